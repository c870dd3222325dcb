#!/usr/bin/env bash
# Submits a study: one job array for each combination of workers and servers, with one cell per element, and a job
# that collects the results when all have ended. Without a scheduler (site workstation), runs the study here.
#
#   slurm/submit-study.sh [options] STUDY
#
#   --site S        slurm/sites/S.env; default: generic
#   --out DIR       study directory; default: <site_scratch>/stratagem/<name of the file>
#   --only PATTERN  only cells whose name matches, such as 'dp-*-s1'; may be repeated
#   --resume        continue: submit the cells of DIR that are neither complete nor running
#   --time H:M:S    time limit of a cell, at most a day; default: the site's
#   --calibration F from preflight; tells how early each cell must be told to save
#   --at-once N     elements of an array that run at the same time; default: the site's
#   --limit HOURS   GPU-hours above which it asks first; default: the site's, or 100
#   --yes           do not ask; needed above the limit without a terminal
#   --dry-run       only show the hours and the commands
#
# Examples:
#   slurm/submit-study.sh --site hopper --dry-run inputs/study/study.yaml
#   slurm/submit-study.sh --site hopper --only 'dp-*' inputs/study/study.yaml
#   slurm/submit-study.sh --site hopper --resume inputs/study/study.yaml
#   slurm/submit-study.sh --site workstation inputs/study/study-mini.yaml
set -euo pipefail
home=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=slurm/lib.sh
source "$home/slurm/lib.sh"

# The comment at the top of this file.
usage() { sed -n '2,/^set /s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; }

# Sorted numbers, one per line, as ranges: 0,1,2,5 -> 0-2,5
ranges() {
  awk 'function out() { printf "%s%s", sep, (first == last) ? first : first "-" last; sep = "," }
    NR == 1 { first = last = $1; next }
    $1 == last + 1 { last = $1; next }
    { out(); first = last = $1 }
    END { if (NR) out(); print "" }'
}

parse() {
  study='' site_name=generic out='' resume=0 time='' at_once='' calibration='' only=() most_hours='' yes=0
  while (($# > 0)); do
    case $1 in
      --site | --out | --only | --time | --at-once | --calibration | --limit)
        [[ $# -ge 2 ]] || die 2 "$1 needs a value"
        ;;&
      --site) site_name=$2 ; shift ;;
      --out) out=$2 ; shift ;;
      --only) only+=(--only "$2") ; shift ;;
      --time) time=$2 ; shift ;;
      --at-once) at_once=$2 ; shift ;;
      --calibration) calibration=$2 ; shift ;;
      --limit) most_hours=$2 ; shift ;;
      --yes) yes=1 ;;
      --resume) resume=1 ;;
      --dry-run) dry_run=1 ;;
      -h | --help) usage ; exit 0 ;;
      -*) die 2 "unknown option $1; see --help" ;;
      *) [[ -z $study ]] || die 2 "one study, please: $1 is too many" ; study=$1 ;;
    esac
    shift
  done
  [[ $most_hours =~ ^[0-9]{0,9}$ ]] || die 2 "--limit $most_hours is not a whole number of hours"
  [[ $at_once =~ ^([1-9][0-9]{0,4})?$ ]] || die 2 "--at-once $at_once is not a whole number of elements"
}

# Sets `cells` to lines "index workers servers name" of the cells to run.
choose_cells() {
  local listed open
  listed=$("$program" sweep "$study" --list --format csv ${only[@]+"${only[@]}"}) || exit
  cells=$(awk -F, 'NR > 1 { print $1, $9, $10, $2 }' <<< "$listed")
  ((resume)) || return 0
  open=$("$program" status "$out" --format csv) || exit
  cells=$(awk 'NR == FNR { split($0, field, ","); if (FNR > 1 && field[4] != "running") open[field[1]]; next }
    $1 in open' <(echo "$open") <(echo "$cells"))
}

# Sets `planned` to lines "KEY VALUE" of the plans of the cells to run. Cells that cannot run are told here, and not by
# their jobs.
plan_cells() {
  local json code=0 problems told
  problems=$(mktemp)
  json=$("$program" plan "$study" ${calibration:+--calibration "$calibration"} --no-activations --json \
    2> "$problems") || code=$?
  told=$(< "$problems")
  rm -f "$problems"
  [[ -n $json ]] || { printf '%s\n' "$told" >&2; exit "$code"; }
  planned=$(awk 'NR == FNR { chosen["  \"" $4 "\": {"]; next }
    /^  "/ { inside = $0 in chosen; cell = $1 }
    inside && /^(   "(problem|run_device)|    +"lead_s)": / { sub(/^ +"/, ""); sub(/": /, " "); sub(/,$/, "")
      print (/^problem/ ? "problem " cell substr($0, 8) : $0) }' <(echo "$cells") <(echo "$json"))
  told=$(sed -n 's/^problem //p' <<< "$planned")
  [[ -z $told ]] || die 2 "nothing submitted: $(wc -l <<< "$told") of $(wc -l <<< "$cells") cells cannot run: $(
    head -3 <<< "$told"); correct the study, exclude them, or take others with --only"
}

# Sets `device`: cpu where no cell uses a GPU.
choose_device() {
  local on_cpu all
  on_cpu=$(grep -c '^run_device "cpu"$' <<< "$planned" || true) all=$(wc -l <<< "$cells")
  device=auto
  ((on_cpu == 0)) || device=cpu
  ((on_cpu == 0 || on_cpu == all)) ||
    die 2 "$on_cpu of $all cells have run.device: cpu, and need other nodes: submit them apart, with --only"
}

# Sets `lead`: how many seconds before the time limit a cell is told to save. The cell that saves slowest decides;
# without a calibration it is the site's value.
choose_lead() {
  lead=$site_usr1_lead_s
  if [[ -n $calibration ]]; then
    lead=$(sed -n 's/^lead_s //p' <<< "$planned" | sort -n | tail -1)
    [[ -n $lead ]] || die 2 "$calibration was measured for none of the cells of $study"
  fi
  check_lead "$time" "$lead"
}

# Sets `shapes` to lines "workers servers cells", `seconds` to the time limit of a cell, and `hours` to the total limit.
measure() {
  time=${time:-$(printf '%02d:00:00' "$site_hours_per_cell")}
  seconds=$(seconds_of "$time") || exit
  ((seconds <= 86400)) || die 2 "--time $time is more than a day"
  shapes=$(awk '{ number[$2 " " $3]++ } END { for (shape in number) print shape, number[shape] }' <<< "$cells" |
    sort -n -k1,1 -k2,2)
  hours=$(awk -v seconds="$seconds" '{ all += $1 * $3 * seconds / 3600 } END { print (all > int(all)) + int(all) }' \
    <<< "$shapes")
  unit=GPU
  [[ -n $site_gres && $device != cpu ]] || unit=worker
}

show() {
  local workers servers number
  printf '%s\n' "$(wc -l <<< "$cells") cells of $name into $out"
  while read -r workers servers number; do
    printf '%-12s %4d cells, %2d workers, %d servers, %d %s-hours at most\n' "" "$number" "$workers" "$servers" \
      $(((number * workers * seconds + 3599) / 3600)) "$unit"
  done <<< "$shapes"
  echo "at most $hours $unit-hours, $time for each cell"
}

# Above the limit, the user must confirm.
agree() {
  local limit=${most_hours:-$site_limit_hours} answer=''
  ((hours > limit && !yes && !dry_run)) || return 0
  [[ -t 0 && -t 2 ]] ||
    die 2 "nothing submitted: $hours $unit-hours are more than the limit of $limit; take a part of the study with" \
      "--only, less --time, or say --yes"
  read -rp "More than $limit $unit-hours. Submit? [y/N] " answer || true
  [[ $answer == [yY] || $answer == [yY][eE][sS] ]] || die 2 "nothing submitted"
}

# Submits an array for the cells with the same workers and servers.
submit_shape() {
  local workers=$1 servers=$2 indices shape=w$1
  ((servers == 0)) || shape+=-s$servers
  indices=$(awk -v w="$workers" -v s="$servers" '$2 == w && $3 == s { print $1 }' <<< "$cells")
  resources_for "$workers" "$servers" "$device"
  submit "--job-name=$name-$shape" "${resources[@]}" "--time=$time" \
    "--signal=B:USR1@$lead" "--array=$(ranges <<< "$indices")%$at_once" \
    "--output=$out/logs/%x-%A_%a.log" "$home/slurm/study.sbatch" "$study" "$out"
  jobs+=("$job")
  told+=("$(printf '%-12s job %s' "$shape" "$job")")
}

submit_all() {
  local workers servers jobs=() told=()
  at_once=${at_once:-$site_cells_at_once}
  ((dry_run)) || mkdir -p "$out/logs"
  while read -r workers servers _; do
    submit_shape "$workers" "$servers"
  done <<< "$shapes"
  resources_without_gpu
  submit "${resources[@]}" "--dependency=afterany:$(IFS=: ; echo "${jobs[*]}")" \
    "--output=$out/logs/%x-%j.log" "$home/slurm/collect.sbatch" "$out"
  printf '%s\n' "${told[@]}" "$(printf '%-12s job %s' collect "$job")" "state: stratagem status $out"
}

run_here() {
  local command=("$program" sweep "$study" --all ${only[@]+"${only[@]}"} --out "$out" --launcher "$site_launcher")
  if ((dry_run)); then
    show_command "${command[@]}"
    show_command "$program" collect "$out"
    return
  fi
  local code=0
  "${command[@]}" || code=$?
  "$program" collect "$out" || true
  exit "$code"
}

main() {
  parse "$@"
  [[ -n $study ]] || { usage >&2; exit 2; }
  load_site "$site_name"
  find_program
  [[ -r $study ]] || die 2 "no study $study"
  study=$(realpath "$study")
  name=$(basename "$study" .yaml)
  out=$(realpath -m "${out:-$site_scratch/stratagem/$name}")
  if ((resume)); then
    [[ -r $out/study.json ]] || die 2 "nothing to resume: $out is not a study directory"
  elif [[ -r $out/study.json && $site_scheduler == slurm ]]; then
    die 2 "$out already exists: continue with --resume, or name another with --out"
  fi
  if [[ $site_scheduler == none ]]; then
    run_here
    return
  fi
  # Which refuses another study than the folder's.
  ((!resume)) || "$program" sweep "$study" --prepare --out "$out" || exit
  choose_cells
  [[ -n $cells ]] || { echo "all cells are complete or running: nothing to submit"; exit 0; }
  plan_cells
  choose_device
  measure
  choose_lead
  show
  agree
  ((dry_run || resume)) || "$program" sweep "$study" --prepare --out "$out"
  submit_all
}

main "$@"
