/** Lets another host copy a disk that no guest has open, with qemu-nbd: read-only, encrypted with a key that both ends
 *  know. Serving stops with the agent. A server that a killed agent left running is stopped by the next agent, because
 *  it keeps guests from the disk. */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '../../../../kit/sys/clock.ts'
import { environment, signalProcess } from '../../../../kit/sys/process.ts'
import { processArgumentsOf } from '../../host.ts'
import { freePort, type PortRange } from '../hypervisor/listening-port.ts'
import { KEY_FILE, keyFileText } from '../hypervisor/qemu-migration.ts'
import { formatOf } from './rbd-path.ts'
import { assertReachable } from '../hypervisor/assert-reachable.ts'

export interface DiskServerOptions {
  /** Holds one folder per served disk. */
  readonly folder: string
  readonly host: string
  readonly ports?: PortRange | undefined
  readonly clock: Clock
}

export interface DiskServer {
  serve(name: string, path: string, key: string): Promise<{ readonly host: string; readonly port: number }>
  stop(name: string): Promise<void>
  at(name: string): { readonly host: string; readonly port: number } | undefined
}

const SERVER_PROGRAM = 'qemu-nbd'
export const EXPORT = 'disk'
const PID_FILE = 'pid'
const READY_MILLISECONDS = 10_000
const POLL_MILLISECONDS = 50
const END_MILLISECONDS = 5_000
const READERS_MAXIMUM = 4

interface ServedDisk {
  readonly child: ChildProcess
  readonly isClosedInOrder: boolean
  readonly host: string
  readonly port: number
}

/** Stops servers that a killed agent left running in the folder. */
export async function openDiskServer({ folder, host, ports, clock }: DiskServerOptions): Promise<DiskServer> {
  const served = new Map<string, ServedDisk>()
  await mkdir(folder, { recursive: true, mode: 0o700 })
  for (const name of await readdir(folder)) await endLeftover(join(folder, name), clock)

  async function stop(name: string): Promise<void> {
    const { child, isClosedInOrder } = served.get(name) ?? {}
    served.delete(name)
    if (child !== undefined && child.exitCode === null && child.signalCode === null) {
      const ended = new Promise((resolve) => child.once('exit', resolve))
      const forget = clock.after(END_MILLISECONDS, () => child.kill('SIGKILL'))
      child.kill(isClosedInOrder ? 'SIGTERM' : 'SIGKILL') // it only reads
      await ended
      forget()
    }
    await rm(join(folder, name), { recursive: true, force: true })
  }

  async function serve(name: string, path: string, key: string): Promise<ServedDisk> {
    await stop(name)
    const own = join(folder, name)
    await mkdir(own, { mode: 0o700 })
    await writeFile(join(own, KEY_FILE), keyFileText(key), { mode: 0o600 })
    const port = await freePort(host, ports)
    const child = spawnServer({ own, host, port, path })
    child.once('exit', () => {
      if (served.get(name)?.child === child) served.delete(name)
    })
    await Promise.all([
      untilListening(child, { host, port, clock }),
      writeFile(join(own, PID_FILE), String(child.pid ?? 0)),
    ])
    // A cluster that is not informed considers the disk open for another 30 seconds.
    const found = { child, host, port, isClosedInOrder: formatOf(path) === 'raw' }
    served.set(name, found)
    return found
  }

  return {
    stop,
    async serve(name, path, key) {
      const { host: at, port } = await serve(name, path, key)
      return { host: at, port }
    },
    at(name) {
      const found = served.get(name)
      return found === undefined ? undefined : { host: found.host, port: found.port }
    },
  }
}

const spawnServer = ({
  own,
  host,
  port,
  path,
}: {
  /** The folder with the key. */
  readonly own: string
  readonly host: string
  readonly port: number
  /** The disk. */
  readonly path: string
}): ChildProcess =>
  spawn(
    SERVER_PROGRAM,
    [
      '--read-only',
      '--persistent',
      `--shared=${READERS_MAXIMUM}`,
      `--bind=${host}`,
      `--port=${port}`,
      `--export-name=${EXPORT}`,
      `--format=${formatOf(path)}`,
      '--object',
      `tls-creds-psk,id=key,dir=${own.replaceAll(',', ',,')},endpoint=server`,
      '--tls-creds=key',
      path,
    ],
    { stdio: 'ignore', env: { PATH: environment()['PATH'] } },
  )

/** Rejects and kills the process when it does not listen in time or has exited. */
async function untilListening(
  child: ChildProcess,
  { host, port, clock }: { readonly host: string; readonly port: number; readonly clock: Clock },
): Promise<void> {
  let failure: string | undefined
  child.once('error', (error) => void (failure ??= error.message))
  child.once('exit', (code) => void (failure ??= `${SERVER_PROGRAM} ended with code ${code}`))
  const isListening = () =>
    assertReachable(host, port, clock).then(
      () => true,
      () => false,
    )
  const deadline = clock.monotonicMilliseconds() + READY_MILLISECONDS
  while (failure === undefined && !(await isListening())) {
    if (clock.monotonicMilliseconds() > deadline) failure ??= `${SERVER_PROGRAM} does not listen`
    else await clock.sleep(POLL_MILLISECONDS)
  }
  if (failure === undefined) return
  child.kill('SIGKILL')
  throw new Error(failure)
}

/** Stops the process that an agent left in the folder. */
async function endLeftover(folder: string, clock: Clock): Promise<void> {
  const pid = Number(await readFile(join(folder, PID_FILE), 'utf8').catch(() => '0'))
  const isOurs = async () =>
    pid > 0 && (await processArgumentsOf(pid))?.some((argument) => argument.includes(folder)) === true
  if (await isOurs()) signalProcess(pid, 'SIGKILL')
  while (await isOurs()) await clock.sleep(POLL_MILLISECONDS)
  await rm(folder, { recursive: true, force: true })
}
