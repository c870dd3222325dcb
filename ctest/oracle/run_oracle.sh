#!/bin/sh
# run_oracle.sh PYTHON ARGUMENTS...: oracle.py under PYTHON, or under $STRATAGEM_ORACLE_PYTHON where
# PYTHON is empty; says so and succeeds where neither is set.
python=${1:-$STRATAGEM_ORACLE_PYTHON}
shift
if [ -z "$python" ]; then
  echo "SKIPPED: needs a Python with torch and torchvision (set STRATAGEM_ORACLE_PYTHON)"
  exit 0
fi
exec "$python" -u "$(dirname "$0")/oracle.py" "$@"
