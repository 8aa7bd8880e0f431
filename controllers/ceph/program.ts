/** The program `ceph`, as a client of the cluster. The key is passed in the environment, because every user of the
 *  machine can read arguments. */
import { execFile } from 'node:child_process'
import { environment } from '../../kit/sys/process.ts'
import { StorageAccessFailed, type StorageLogin } from '../fencing/storage-access.ts'

/** Runs a command of the program. Throws StorageAccessFailed. */
export type CephProgram = (...command: readonly string[]) => Promise<string>

/** Together shorter than the silence after which a node counts as unreachable: a program that outlives its controller
 *  cannot restore the access of a host that is fenced meanwhile. */
const CONNECT_SECONDS = 5
const ANSWER_SECONDS = 8
const PROGRAM_MILLISECONDS_MAXIMUM = 14_000
const OUTPUT_BYTES_MAXIMUM = 16 * 1024 * 1024
const WORDS_LENGTH_MAXIMUM = 200

const MONITORS = /^[[\]a-z0-9][[\]a-z0-9.,:-]*$/i
const USERNAME = /^[a-z0-9][-a-z0-9._]*$/i
const KEY = /^[a-z0-9+/]+={0,2}$/i

/** `program`: where it is, when not `ceph` on the path. Throws StorageAccessFailed when the login cannot be used. */
export function openCephProgram({ monitors, username, key }: StorageLogin, program = 'ceph'): CephProgram {
  if (!MONITORS.test(monitors) || !USERNAME.test(username) || !KEY.test(key))
    throw new StorageAccessFailed(
      'The addresses of the monitors, the name of the client or its key are not what Ceph takes.',
    )
  const words = [
    '--conf',
    '/dev/null',
    '--mon-host',
    monitors,
    '--name',
    `client.${username}`,
    '--connect-timeout',
    String(CONNECT_SECONDS),
    '--rados-mon-op-timeout',
    String(ANSWER_SECONDS),
  ]
  return (...command) => run(program, [...words, ...command], key)
}

function run(program: string, words: readonly string[], key: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const env = { PATH: environment()['PATH'], LC_ALL: 'C', CEPH_ARGS: `--key=${key}` }
    execFile(
      program,
      [...words],
      { env, timeout: PROGRAM_MILLISECONDS_MAXIMUM, killSignal: 'SIGKILL', maxBuffer: OUTPUT_BYTES_MAXIMUM },
      (error, stdout, stderr) => {
        if (error === null) return resolve(stdout)
        // A missing program has the system's code; an exit has a number.
        if (error.code === ('ENOENT' as unknown))
          return reject(new StorageAccessFailed(`${program} is not installed.`, { cause: error }))
        reject(error.killed === true ? new StorageAccessFailed(SILENT, { cause: error }) : failureOf(stderr, error))
      },
    )
  })
}

const SILENT =
  'The monitors of the storage gave no answer in time: they are not there, have no quorum, or do not let the client in.'

function failureOf(stderr: string, cause: Error): StorageAccessFailed {
  const words = stderr.trim().split('\n').at(-1) ?? ''
  if (/permission denied \(error connecting/i.test(words))
    return new StorageAccessFailed('The monitors of the storage do not let the client in.', { cause })
  if (/timed ?out|ETIMEDOUT/i.test(words)) return new StorageAccessFailed(SILENT, { cause })
  return new StorageRefused(`The storage refuses: ${words.slice(0, WORDS_LENGTH_MAXIMUM)}`, { cause })
}

/** The cluster answered, and refused the command. */
export class StorageRefused extends StorageAccessFailed {}
