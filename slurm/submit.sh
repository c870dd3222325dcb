#!/usr/bin/env bash
# Submits one job with the options that the site requires.
#
#   slurm/submit.sh [options] smoke-cpu [OUT]
#   slurm/submit.sh [options] smoke-mig [OUT]
#   slurm/submit.sh [options] preflight [OUT [STUDY]]
#   slurm/submit.sh [options] run CONFIG [OUT]
#
#   --site S       slurm/sites/S.env; default: generic
#   --workers N    ranks that train, one GPU each; default: 1; for run: from run.ranks of CONFIG
#   --servers N    additional server ranks; default: 0; for preflight: 1; for run: strategy.servers of CONFIG
#   --time H:M:S   time limit of the job, also as D-H:M:S or minutes; default: one hour, or as in its script
#   --lead S       how many seconds before the time limit a run is told to save; default: the site's
#   --dry-run      only show the command
#
# Examples:
#   slurm/submit.sh --site hopper smoke-cpu
#   slurm/submit.sh --site hopper --workers 4 --time 02:00:00 run my.yaml
#   slurm/submit.sh --site hopper --workers 3 --servers 1 --dry-run run inputs/smoke/digits-lenet-ps.yaml
set -euo pipefail
home=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=slurm/lib.sh
source "$home/slurm/lib.sh"

# The comment at the top of this file.
usage() { sed -n '2,/^set /s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; }

# plan_of CONFIG [OPTIONS]: sets `planned` to what the program says of the configuration. Its mistakes are told here,
# and not by the job.
plan_of() {
  planned=$("$program" plan "$@" --no-activations --json) ||
    die 2 "correct $1, or if only ranks are missing, add --workers N and, for a parameter server, --servers N"
}

# A field of the output of `plan --json`.
field_of() { sed -n "s/^  \"$1\": \"\{0,1\}\([a-z0-9]*\).*/\1/p" <<< "$planned"; }

# How many ranks have a role there.
ranks_that_are() { grep -c "\"role\": \"$1\"" <<< "$planned" || true; }

# shape_of CONFIG: sets `workers`, `servers` and `device` from the configuration, unless they are given. The number of
# ranks is required: one rank would train, too, but without any parallelism.
shape_of() {
  local planned strategy
  find_program
  if [[ -z $workers || -z $servers ]]; then
    plan_of "$1"
    strategy=$(field_of strategy)
    servers=${servers:-$(ranks_that_are server)}
    [[ -n $workers || $strategy == serial || $(field_of run_ranks) -gt 0 ]] ||
      die 2 "run $1 on how many ranks? add --workers N, or set run.ranks; one alone would not train with $strategy"
    workers=${workers:-$(ranks_that_are worker)}
  fi
  plan_of "$1" --ranks $((workers + servers))
  [[ $(ranks_that_are server) -eq $servers ]] ||
    die 2 "--servers $servers, and strategy.servers of $1 makes it $(ranks_that_are server)"
  device=$(field_of run_device)
}

# choose_shape WHAT [CONFIG]: fills in --workers and --servers if they were not given.
choose_shape() {
  if [[ $1 == run ]]; then
    [[ $# -ge 2 ]] || die 2 "run which configuration?"
    [[ -r $2 ]] || die 2 "no configuration $2"
    [[ -z $servers || -n $workers ]] || die 2 "--servers $servers needs --workers N"
    shape_of "$2"
  fi
  workers=${workers:-1}
  servers=${servers:-$([[ $1 == preflight ]] && echo 1 || echo 0)}
}

main() {
  local site_name=generic workers='' servers='' device='' limit='' lead='' words=()
  while (($# > 0)); do
    case $1 in
      --site | --workers | --servers | --time | --lead) [[ $# -ge 2 ]] || die 2 "$1 needs a value" ;;&
      --site) site_name=$2 ; shift ;;
      --workers) workers=$2 ; shift ;;
      --servers) servers=$2 ; shift ;;
      --time) limit=$2 ; shift ;;
      --lead) lead=$2 ; shift ;;
      --dry-run) dry_run=1 ;;
      -h | --help) usage ; exit 0 ;;
      -*) die 2 "unknown option $1; see --help" ;;
      *) words+=("$1") ;;
    esac
    shift
  done
  ((${#words[@]} > 0)) || { usage >&2; exit 2; }
  local what=${words[0]}
  set -- "${words[@]:1}"
  [[ $workers =~ ^([1-9][0-9]*)?$ && $servers =~ ^[0-9]*$ ]] || die 2 "--workers must be 1 or more, --servers 0 or more"
  [[ $lead =~ ^([1-9][0-9]*)?$ ]] || die 2 "--lead is a whole number of seconds"
  load_site "$site_name"
  [[ $site_scheduler == slurm ]] || die 2 "site $site_name has no scheduler: start mpirun yourself"
  choose_shape "$what" "$@"
  case $what in
    smoke-cpu) resources_without_gpu ;;
    smoke-mig)
      [[ -n $site_mig_gres ]] || die 2 "site $site_name names no site_mig_gres"
      resources_for 1 0
      resources=("${resources[@]/--gres=*/--gres=$site_mig_gres}")
      resources=("${resources[@]/--cpus-per-task=*/--cpus-per-task=$site_mig_cpus}")
      resources=("${resources[@]/--mem=*/--mem=${site_mig_memory_gb}G}")
      ;;
    preflight | run) resources_for "$workers" "$servers" "$device" ;;
    *) die 2 "unknown job $what; one of smoke-cpu, smoke-mig, preflight and run" ;;
  esac
  [[ -z $limit ]] || seconds_of "$limit" > /dev/null || exit
  if [[ $what == run ]]; then
    check_lead "${limit:-01:00:00}" "${lead:-$site_usr1_lead_s}"
    resources+=("--time=${limit:-01:00:00}" "--signal=B:USR1@${lead:-$site_usr1_lead_s}")
  elif [[ -n $limit ]]; then
    resources+=("--time=$limit")
  fi
  export STRATAGEM_WORKERS=$workers
  submit "${resources[@]}" "$home/slurm/$what.sbatch" "$@"
  ((dry_run)) || echo "job $job"
}

main "$@"
