#!/usr/bin/env bash
# Submits one job with what the site asks for.
#
#   slurm/submit.sh [options] smoke-cpu [OUT]
#   slurm/submit.sh [options] smoke-mig [OUT]
#   slurm/submit.sh [options] preflight [OUT [STUDY]]
#   slurm/submit.sh [options] run CONFIG [OUT]
#
#   --site S       slurm/sites/S.env; default generic
#   --workers N    ranks that train, one GPU each; default 1
#   --servers N    ranks that serve, beside them; default 0, for preflight 1
#   --time H:M:S   of the job; default one hour, or what its script says
#   --lead S       how many seconds before its end a run is told to save; default the site's
#   --dry-run      show the command
set -euo pipefail
home=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=slurm/lib.sh
source "$home/slurm/lib.sh"

usage() { sed -n '2,15s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; }

main() {
  local site_name=generic workers=1 servers='' limit='' lead='' what
  while [[ ${1:-} == -* ]]; do
    case $1 in
      --site | --workers | --servers | --time | --lead) [[ $# -ge 2 ]] || die 2 "$1 needs a value" ;;&
      --site) site_name=$2 ; shift 2 ;;
      --workers) workers=$2 ; shift 2 ;;
      --servers) servers=$2 ; shift 2 ;;
      --time) limit=$2 ; shift 2 ;;
      --lead) lead=$2 ; shift 2 ;;
      --dry-run) dry_run=1 ; shift ;;
      -h | --help) usage ; exit 0 ;;
      *) die 2 "unknown option $1; see --help" ;;
    esac
  done
  [[ $# -ge 1 ]] || { usage >&2; exit 2; }
  [[ -n $servers ]] || servers=$([[ $1 == preflight ]] && echo 1 || echo 0)
  [[ $workers =~ ^[1-9][0-9]*$ && $servers =~ ^[0-9]+$ ]] || die 2 "--workers and --servers are whole numbers"
  what=$1
  shift
  [[ $lead =~ ^([1-9][0-9]*)?$ ]] || die 2 "--lead is a whole number of seconds"
  load_site "$site_name"
  [[ $site_scheduler == slurm ]] || die 2 "site $site_name has no scheduler: start mpirun yourself"
  case $what in
    smoke-cpu) resources_without_gpu ;;
    smoke-mig)
      [[ -n $site_mig_gres ]] || die 2 "site $site_name names no site_mig_gres"
      resources_for 1 0
      resources=("${resources[@]/--gres=*/--gres=$site_mig_gres}")
      resources=("${resources[@]/--cpus-per-task=*/--cpus-per-task=$site_mig_cpus}")
      resources=("${resources[@]/--mem=*/--mem=${site_mig_memory_gb}G}")
      ;;
    preflight | run) resources_for "$workers" "$servers" ;;
    *) die 2 "unknown job $what; one of smoke-cpu, smoke-mig, preflight and run" ;;
  esac
  if [[ $what == run ]]; then
    [[ $# -ge 1 && -r $1 ]] || die 2 "run which configuration?"
    resources+=("--time=${limit:-01:00:00}" "--signal=B:USR1@${lead:-$site_usr1_lead_s}")
  elif [[ -n $limit ]]; then
    resources+=("--time=$limit")
  fi
  export STRATAGEM_WORKERS=$workers
  submit "${resources[@]}" "$home/slurm/$what.sbatch" "$@"
  ((dry_run)) || echo "job $job"
}

main "$@"
