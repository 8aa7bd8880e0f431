/** The isolation of engines on this machine, and its command line. With root each tenant's engine has a separate user
 *  and separate namespaces. An ordinary user has namespaces if the kernel allows them. Nothing here reads data of a
 *  tenant. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { environment, isRoot } from '../../kit/sys/process.ts'
import { tied } from '../kit/daemon.ts'

const run = promisify(execFile)

/** `uid`: separate user and namespaces. `namespace`: separate namespaces. `account`: separate user. `process`: only a
 *  separate process. */
export const ISOLATIONS = ['uid', 'namespace', 'account', 'process'] as const
export interface Isolation {
  readonly kind: (typeof ISOLATIONS)[number]
  /** The engine has /proc, with the processes of its namespace. */
  readonly hasProc: boolean
}

/** For people, shown at every start. */
export const ISOLATION_TEXTS: Readonly<Record<Isolation['kind'], string>> = {
  uid: 'each tenant has a separate process, with its own user and namespaces',
  namespace: 'each tenant has a separate process, with its own namespaces, as the user of the platform',
  account: 'each tenant has a separate process, with its own user; this machine allows no namespaces',
  process: 'each tenant has a separate process, as the user of the platform; this machine allows no namespaces',
}

/** A tenant's folder and user. */
export interface Cell {
  /** Contains the folders `data`, `versions` and `run`. */
  readonly folder: string
  /** User and group of its engine; undefined when they are those of this process. */
  readonly uid: number | undefined
}

/** Paths of the folders in the engine's view. */
export interface InnerPaths {
  readonly program: string
  readonly data: string
  readonly versions: string
  readonly run: string
}

/** Descriptors that are passed when there are no namespaces, in this order. Paths below them are short and need no
 *  rights on the parent folders. */
export const HANDED = ['data', 'versions', 'run', 'program'] as const
const FIRST_DESCRIPTOR = 3
const handed = (name: (typeof HANDED)[number]): string => `/proc/self/fd/${FIRST_DESCRIPTOR + HANDED.indexOf(name)}`
const INSIDE: InnerPaths = { program: '/engine', data: '/data', versions: '/versions', run: '/run' }
const BY_DESCRIPTORS: InnerPaths = {
  program: handed('program'),
  data: handed('data'),
  versions: handed('versions'),
  run: handed('run'),
}

export const hasNamespaces = ({ kind }: Isolation): boolean => kind === 'uid' || kind === 'namespace'
export const hasUsers = ({ kind }: Isolation): boolean => kind === 'uid' || kind === 'account'
export const innerPaths = (isolation: Isolation): InnerPaths => (hasNamespaces(isolation) ? INSIDE : BY_DESCRIPTORS)

/** Arguments: an empty folder, the folder of the tenant, the program, whether there is /proc, the command. Everything
 *  except the tenant's three folders is read-only, and nothing of the tenant is read or run before the command.
 *  Unmounting reads /proc: if no separate one is possible, the host's /proc stays mounted until the end. */
const ENTER = `set -e
umask 022
root=$1 folder=$2 program=$3 proc=$4
shift 4
mount -n -t tmpfs -o size=1m,mode=755,nosuid,nodev none "$root"
cd "$root"
mkdir usr dev data versions run proc old
touch engine dev/null dev/urandom
fixed() { mount -n --bind "$1" "$2"; mount -n -o remount,bind,ro,nosuid,nodev none "$2"; }
fixed /usr usr
for each in lib lib32 lib64; do
  if [ -L "/$each" ]; then ln -s "$(readlink "/$each")" "$each"
  elif [ -d "/$each" ]; then mkdir "$each"; fixed "/$each" "$each"
  fi
done
fixed "$program" engine
for each in null urandom; do mount -n --bind "/dev/$each" "dev/$each"; done
for each in data versions run; do
  mount -n --bind "$folder/$each" "$each"
  mount -n -o remount,bind,nosuid,nodev,noexec none "$each"
done
if [ "$proc" = true ]; then mount -n -t proc -o subset=pid,nosuid,nodev,noexec none proc
else mount -n --rbind /proc proc
fi
pivot_root . old
cd /
umount -n -l /old
rmdir /old
if [ "$proc" != true ]; then umount -n -l /proc; fi
mount -n -o remount,bind,ro none /
umask 007
exec env -u PWD -u OLDPWD "$@"`

const OWN_NAMESPACES = [
  'unshare',
  '--mount',
  '--net',
  '--ipc',
  '--uts',
  '--pid',
  '--fork',
  '--kill-child',
  '--propagation',
  'private',
  '--',
]
const OWN_USER_NAMESPACE = ['unshare', '--user', '--map-root-user', '--']
const MEBIBYTE = 1024 ** 2
const LIMITS = ['prlimit', '--core=0', '--nofile=8192', `--data=${2_048 * MEBIBYTE}`]
/** Limit of a user's threads. It does not apply to a shared user, whose threads include those of others. */
const THREADS_MAXIMUM = 1_024
const RIGHTLESS = ['--no-new-privs', '--bounding-set=-all', '--inh-caps=-all', '--pdeathsig', 'KILL']

/** The command, which is killed when this process exits. `empty` is a folder that stays empty. */
export function isolated(
  isolation: Isolation,
  { folder, uid }: Cell,
  { program, empty }: { readonly program: string; readonly empty: string },
  command: readonly string[],
): readonly string[] {
  const own = uid === undefined ? [] : [`--reuid=${uid}`, `--regid=${uid}`, '--clear-groups']
  const limits = [...LIMITS, ...(uid === undefined ? [] : [`--nproc=${THREADS_MAXIMUM}`]), '--']
  // Without root there are no capabilities to drop, except in a separate user namespace.
  const mayDrop = isRoot() || isolation.kind === 'namespace'
  const rights = mayDrop ? [...own, ...RIGHTLESS] : ['--no-new-privs', '--pdeathsig', 'KILL']
  const bounded = [...limits, 'setpriv', ...rights, '--', ...command]
  if (!hasNamespaces(isolation)) return tied(['sh', '-c', 'umask 007; exec "$@"', 'sh', ...bounded])
  const words = ['sh', '-c', ENTER, 'sh', empty, folder, program, String(isolation.hasProc), ...bounded]
  return [...(isolation.kind === 'namespace' ? OWN_USER_NAMESPACE : []), ...tied([...OWN_NAMESPACES, ...words])]
}

const TRIAL_MILLISECONDS = 20_000

export interface Trial {
  /** A cell like that of a tenant. */
  readonly cell: Cell
  readonly program: string
  readonly empty: string
}

/** Finds the strongest isolation that this machine allows, by trying it. Without a user for the cell, isolation by
 *  users is excluded. */
export async function findIsolation({ cell, program, empty }: Trial): Promise<Isolation> {
  const users: readonly Isolation['kind'][] = cell.uid === undefined ? [] : ['uid', 'account']
  const kinds = ISOLATIONS.filter((kind) => users.includes(kind) || (!isRoot() && kind === 'namespace'))
  for (const kind of kinds)
    for (const hasProc of kind === 'account' ? [true] : [true, false]) {
      const isolation = { kind, hasProc }
      // The trial only shows that the program can run; engines get the descriptors when they are started.
      const shown = hasNamespaces(isolation) ? [INSIDE.program, '--version'] : ['/bin/true']
      const [first = '', ...words] = isolated(isolation, cell, { program, empty }, shown)
      const isAble = await run(first, words, {
        cwd: '/',
        timeout: TRIAL_MILLISECONDS,
        env: { PATH: environment()['PATH'] },
      }).then(
        () => true,
        () => false,
      )
      if (isAble) return isolation
    }
  return { kind: 'process', hasProc: true }
}
