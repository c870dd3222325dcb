# shellcheck shell=bash
# Functions of the scripts in this folder, to be sourced. `home` must be set to the folder that contains slurm/.
# Exit codes are stratagem's own: 2 usage, 3 environment, 75 saved, 80 peer lost.

die() {
  local code=$1
  shift
  printf 'stratagem: error: %s\n' "$*" >&2
  exit "$code"
}

: "${home:?}"
dry_run=0 dry_jobs=0

# ---- the site ------------------------------------------------------------------------------------

# load_site NAME: reads sites/NAME.env; it sets the variables site_*.
load_site() {
  local file=$home/slurm/sites/$1.env known
  known=$(cd "$home/slurm/sites" && printf '%s ' *.env)
  [[ $1 =~ ^[A-Za-z0-9_-]+$ && -r $file ]] || die 2 "there is no site $1; known: ${known//.env/}"
  site=$1
  site_partition='' site_qos='' site_account='' site_gres='' site_modules=()
  site_cpu_partition='' site_cpu_qos='' site_mig_gres='' site_requeue_codes='75 80' site_limit_hours=100
  # shellcheck source=slurm/sites/generic.env
  source "$file"
}

# resources_for WORKERS SERVERS [DEVICE]: sets `resources`, the sbatch options for workers with one GPU each (or CPUs
# only, if the site has no GPUs or run.device is cpu) and additional servers. GPUs are requested per node: every rank
# sees all GPUs of its node and takes its own, so that GPUs can access each other directly.
resources_for() {
  local workers=$1 servers=$2 device=${3:-auto} nodes per_node cpus
  nodes=$(((workers + site_gpus_per_node - 1) / site_gpus_per_node))
  per_node=$(((workers + nodes - 1) / nodes))
  cpus=$((workers * site_cpus_per_gpu / (workers + servers)))
  if [[ $device == cpu ]]; then resources_without_gpu; else resources_with_gpu; fi
  resources+=("--nodes=$nodes" "--ntasks=$((workers + servers))" "--cpus-per-task=$((cpus > 0 ? cpus : 1))"
    "--mem=$((per_node * site_memory_gb_per_gpu))G")
  ((nodes == 1)) || resources+=("--ntasks-per-node=$(((workers + servers + nodes - 1) / nodes))")
  [[ -z $site_gres || $device == cpu ]] || resources+=("--gres=$site_gres:$per_node")
}

# set_resources PARTITION QOS: those that are named.
set_resources() {
  resources=()
  [[ -z $1 ]] || resources+=("--partition=$1")
  [[ -z $2 ]] || resources+=("--qos=$2")
  [[ -z $site_account ]] || resources+=("--account=$site_account")
}
resources_with_gpu() { set_resources "$site_partition" "$site_qos"; }
resources_without_gpu() { set_resources "$site_cpu_partition" "$site_cpu_qos"; }

# seconds_of LIMIT: of a time limit as sbatch takes it: minutes, M:S, H:M:S, D-H, D-H:M or D-H:M:S.
seconds_of() {
  local days=0 parts
  [[ $1 =~ ^[0-9]{1,7}(:[0-9]{1,2}){0,2}$ || $1 =~ ^[0-9]{1,4}-[0-9]{1,2}(:[0-9]{1,2}){0,2}$ ]] ||
    die 2 "--time $1 is no time limit: write hours:minutes:seconds"
  IFS=: read -ra parts <<< "${1#*-}"
  case $1 in
    *-*) days=${1%%-*} ;;
    *:*:*) ;;
    *) parts=(0 "${parts[@]}") ;;
  esac
  echo $((((10#$days * 24 + 10#${parts[0]}) * 60 + 10#${parts[1]:-0}) * 60 + 10#${parts[2]:-0}))
}

# check_lead LIMIT SECONDS: a run is told to save after it has begun.
check_lead() {
  local seconds
  seconds=$(seconds_of "$1") || exit
  (($2 < seconds)) ||
    die 2 "a run of --time $1 would be told to save $2 s before that, which is at once: give more --time, or less lead"
}

# show_command WORDS...: the command on one line, as a shell takes it.
show_command() {
  local word line=()
  for word in "$@"; do
    [[ $word =~ ^[A-Za-z0-9_@%+=:,./~-]+$ ]] || word=${word@Q}
    line+=("$word")
  done
  printf '%s\n' "${line[*]}"
}

# submit OPTIONS... SCRIPT ARGUMENTS...: submits a job and sets `job` to its number. With dry_run=1 it only shows the
# command, and sets `job` to a placeholder.
submit() {
  local command=(sbatch --parsable "--export=ALL,STRATAGEM_HOME=$home,STRATAGEM_SITE=$site" "$@")
  if ((dry_run)); then
    show_command "${command[@]}"
    job=JOB$((++dry_jobs))
  else
    job=$(timeout 60 "${command[@]}") || die 3 "sbatch refused: ${command[*]}"
    job=${job%%;*}
  fi
}

# Batch shells do not always know `module`; then its init file is sourced first.
load_modules() {
  ((${#site_modules[@]} > 0)) || return 0
  local file name
  if ! command -v module > /dev/null; then
    for file in "${LMOD_PKG:-/usr/share/lmod/lmod}/init/bash" "${MODULESHOME:-/usr/share/modules}/init/bash" \
      /etc/profile.d/lmod.sh /etc/profile.d/modules.sh; do
      [[ -r $file ]] || continue
      set +u
      # shellcheck source=/dev/null
      source "$file"
      set -u
      break
    done
  fi
  command -v module > /dev/null || die 3 "no command 'module' here, which site $site needs for: ${site_modules[*]}"
  set +u
  module use "$home/modules/modulefiles"
  for name in "${site_modules[@]}"; do
    module load "$name" || die 3 "module $name cannot be loaded; correct slurm/sites/$site.env"
  done
  set -u
}

# ---- the program ---------------------------------------------------------------------------------

# Sets `program`: $STRATAGEM, or the program for GPUs where it is built, or the one for CPUs, in an installation, or on
# PATH. The first also runs where there is no GPU; the second refuses jobs that hold GPUs.
find_program() {
  local candidate
  for candidate in "${STRATAGEM:-}" "$home/build-cuda-release/stratagem" "$home/build/stratagem" \
    "$home/../../bin/stratagem" "$(command -v stratagem || true)"; do
    [[ -n $candidate && -x $candidate ]] || continue
    program=$candidate
    return
  done
  die 3 "no program: build it (slurm/README.md, \"1. Build, once\"), or name it with STRATAGEM=<path>"
}

# The first lines of every job.
begin_job() {
  load_site "${STRATAGEM_SITE:-generic}"
  load_modules
  find_program
  printf 'stratagem on %s, job %s, site %s, start %s: %s\n' "$(hostname -s)" "${SLURM_JOB_ID:-none}" "$site" \
    "$((${SLURM_RESTART_COUNT:-0} + 1))" "$("$program" --version)"
}

# ---- running -------------------------------------------------------------------------------------

# supervise COMMAND...: runs it, forwards USR1 to it (the scheduler sends USR1 before the time limit), and returns its
# exit code.
supervise() {
  local child code=0
  "$@" &
  child=$!
  # shellcheck disable=SC2064
  trap "kill -USR1 $child 2> /dev/null || true" USR1
  while :; do
    code=0
    wait "$child" || code=$?
    kill -0 "$child" 2> /dev/null || break  # else a trap interrupted the wait
  done
  trap - USR1
  return "$code"
}

# outcome_of DIR FIELD: a field of the outcome.json in DIR; empty if there is none.
outcome_of() {
  [[ ! -r $1/outcome.json ]] || sed -n "s/^ *\"$2\": //p" "$1/outcome.json" | sed 's/,$//; s/^"//; s/"$//'
}

# supervise_run DIR COMMAND...: supervises a command that runs in DIR. Returns the exit code in outcome.json if the
# command wrote one: a launcher may exit with 0 when a node lost power, or with the signal that killed a rank. A run
# that ended without a known reason counts as lost peer (80).
supervise_run() {
  local out=$1 before status word code=0
  shift
  before=$(cat "$out/outcome.json" 2> /dev/null || true)
  supervise "$@" || code=$?
  status=$(outcome_of "$out" status) word=$(outcome_of "$out" exit_code)
  if ((code == 0)); then
    [[ $status == COMPLETE ]] || code=80
  elif [[ -n $status && $(cat "$out/outcome.json") != "$before" ]]; then
    if [[ $status == RUNNING ]] || (((word == 1 || word > 128) && code > 128)); then code=80; else code=$word; fi
  fi
  # Printed below the launcher's own message, which follows any code but 0.
  if [[ -z $status ]]; then
    ((code == 0)) || echo "there is no run: code $code; see \"stratagem: error\" above"
  elif [[ $status != COMPLETE ]]; then
    echo "the run is $status: $(outcome_of "$out" reason)"
  fi
  return "$code"
}

# end_job CODE: ends the job. If CODE is in site_requeue_codes (saved, lost peer), the job is queued again.
end_job() {
  local code=$1 most=20
  if [[ " $site_requeue_codes " == *" $code "* && -n ${SLURM_JOB_ID:-} ]]; then
    if ((${SLURM_RESTART_COUNT:-0} >= most)); then
      echo "started $most times already: not again" >&2
    else
      echo "code $code: queued again"
      timeout 60 scontrol requeue "$SLURM_JOB_ID" || echo "cannot be queued again: submit it once more" >&2
    fi
  fi
  exit "$code"
}
