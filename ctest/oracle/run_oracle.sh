#!/bin/sh
# run_oracle.sh PYTHON SCRIPT ARGUMENTS...: SCRIPT of this folder under PYTHON, or under
# $STRATAGEM_ORACLE_PYTHON where PYTHON is empty; says so and ends with 77, skipped, where neither is set.
python=${1:-$STRATAGEM_ORACLE_PYTHON}
script=$2
shift 2
if [ -z "$python" ]; then
  echo "SKIPPED: needs a Python with torch and torchvision (set STRATAGEM_ORACLE_PYTHON)"
  exit 77
fi
exec "$python" -u "$(dirname "$0")/$script" "$@"
