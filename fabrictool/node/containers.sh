# Containers of docker, also those that ended, and their images. Read only: nothing is entered or pulled. Prints lines, the last is "end":
#   docker ok|absent|failed RC MESSAGE
#   c PID ID NAME IMAGE IMAGE-ID STATUS    a container (strings as JSON)
#   i IMAGE-ID REPO-DIGESTS                an image (JSON list)       I RC MESSAGE    images could not be asked
#   more                                   containers were left out
set -u
export LC_ALL=C
MOST=300
said() { printf '%s\n' "$1" | tail -n 1 | cut -c1-200; }

if ! command -v docker >/dev/null 2>&1; then
  echo 'docker absent 0 -'
  echo end
  exit 0
fi
ids='' rc=0 out=''
for _ in 1 2; do
  ids=$(timeout 5 docker ps -aq --no-trunc 2>&1 </dev/null)
  rc=$?
  if [ "$rc" -ne 0 ]; then out=$ids; break; fi
  ids=$(printf '%s\n' "$ids" | grep -E '^[0-9a-f]{12,64}$')
  out=
  [ -n "$ids" ] || break
  some=$(printf '%s\n' "$ids" | head -n "$MOST")
  # shellcheck disable=SC2086 # one word per id, hex digits only
  out=$(timeout 8 docker inspect -f '{{.State.Pid}} {{.Id}} {{json .Name}} {{json .Config.Image}} {{json .Image}} {{json .State.Status}}' $some 2>&1 </dev/null)
  rc=$?
  [ "$rc" -eq 0 ] && break # a container may be removed between the two: once more
done
if [ "$rc" -ne 0 ]; then
  printf 'docker failed %s %s\nend\n' "$rc" "$(said "$out")"
  exit 0
fi
echo 'docker ok 0 -'
[ -z "$out" ] || printf '%s\n' "$out" | sed 's/^/c /'
[ "$(printf '%s\n' "$ids" | grep -c .)" -le "$MOST" ] || echo more
images=$(printf '%s\n' "$out" | grep -oE '"sha256:[0-9a-f]{64}"' | tr -d '"' | sort -u)
if [ -n "$images" ]; then
  # shellcheck disable=SC2086 # one word per id
  out=$(timeout 8 docker image inspect -f '{{.Id}} {{json .RepoDigests}}' $images 2>&1 </dev/null)
  rc=$?
  if [ "$rc" -eq 0 ]; then printf '%s\n' "$out" | sed 's/^/i /'; else printf 'I %s %s\n' "$rc" "$(said "$out")"; fi
fi
echo end
