/** The listener of the metadata service for guests in a network of OVN: the host's end of the service's port at the
 *  zone's switch, in a separate network namespace. The guest of a connection is identified by the hardware address that
 *  the source address resolves to. OVN itself answers these address requests, and no guest can send from another
 *  guest's address or claim it. Needs root, or separate namespaces for the agent. */
import { type ChildProcess, spawn } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import type { Server, Socket } from 'node:net'
import { join } from 'node:path'
import { metadataPort } from '../../../domain/network/metadata-service.ts'
import type { Clock } from '../../../kit/sys/clock.ts'
import { environment, nodeBinary } from '../../../kit/sys/process.ts'
import { Outages } from '../../../kit/sys/outages.ts'
import { insideCommand, runInside } from '../drivers/network/namespace.ts'
import { OVN_MTU } from '../drivers/network/ovn.ts'
import { INTEGRATION_BRIDGE } from '../drivers/network/ovn-guard.ts'
import { runProgram } from '../run-program.ts'
import { CONNECTIONS_MAXIMUM, type MetadataHttpOptions, openMetadataHttp } from './metadata-http.ts'

export interface MetadataPortOptions extends MetadataHttpOptions {
  /** Zone of the host's guests; undefined while there are none. */
  readonly zone: () => string | undefined
  /** Namespace of Open vSwitch and the guests, if it is not the agent's own network namespace. */
  readonly namespace?: string | undefined
  /** Takes connections to the port of the archive; they are refused when it is absent. */
  readonly relay?: ((socket: Socket, mark: string) => void) | undefined
}

const OUTER_INTERFACE = 'svcmetadata'
export const INNER_INTERFACE = 'eth0'
const PROGRAM = join(import.meta.dirname, 'metadata-namespace.ts')
/** As many as for guests of user-mode networking. */
const GUEST_CONNECTIONS_MAXIMUM = 8
const LOOK_MILLISECONDS = 500
/** Pause after a failure. */
const RETRY_MILLISECONDS = 5_000
const READY_MILLISECONDS = 15_000

/** Serves until the signal aborts. Identifies guests by their hardware addresses. Restarts what ends or breaks
 *  meanwhile. */
export async function runMetadataPort(
  { zone, namespace, relay = refuse, ...options }: MetadataPortOptions,
  signal: AbortSignal,
): Promise<void> {
  const { clock, log } = options
  const http = openMetadataHttp(options)
  const takes = { archive: relay, listening: http.take }
  const outages = new Outages({ log, clock }, 'the metadata service does not reach guests')
  while (!signal.aborted) {
    const name = zone()
    const isRefused =
      name !== undefined &&
      (await serve({ zone: name, namespace }, takes, { clock, isThere: () => outages.over() }, signal).then(
        () => false,
        (error: unknown) => {
          if (!signal.aborted) outages.failed(error)
          return true
        },
      ))
    await clock.sleep(isRefused ? RETRY_MILLISECONDS : LOOK_MILLISECONDS, signal)
  }
  http.close()
}

const refuse = (socket: Socket): void => void socket.destroy()

type Take = (socket: Socket, mark: string) => void

interface Place {
  readonly zone: string
  readonly namespace: string | undefined
}

/** Serves until the namespace ends. */
async function serve(
  place: Place,
  takes: Readonly<Record<'archive' | 'listening', Take>>,
  { clock, isThere }: { readonly clock: Clock; readonly isThere: () => void },
  signal: AbortSignal,
): Promise<void> {
  const [program = '', ...words] = insideCommand(place.namespace, ['unshare', '--net', nodeBinary(), PROGRAM])
  const namespace = spawn(program, words, {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    env: { PATH: environment()['PATH'] },
  })
  const ended = new Promise<void>((resolve, reject) => {
    namespace.on('error', reject)
    namespace.once('exit', () => resolve())
  })
  ended.catch(() => {}) // callers that wait for it get the error
  const end = () => namespace.kill('SIGKILL')
  signal.addEventListener('abort', end, { once: true })
  const tooLate = clock.after(READY_MILLISECONDS, end)
  const servers: (Server | undefined)[] = []
  try {
    await messageOf(namespace, ended, 'here')
    await plugIn(namespace.pid ?? 0, place)
    const listening = (['archive', 'listening'] as const).map(async (what) => {
      const server = await messageOf(namespace, ended, what)
      servers.push(server)
      accept(server, namespace.pid ?? 0, takes[what])
    })
    namespace.send({})
    await Promise.all(listening)
    tooLate()
    isThere()
    await ended
  } finally {
    tooLate()
    signal.removeEventListener('abort', end)
    end()
    for (const server of servers) server?.close()
    await unplug().catch(() => '') // the next attempt does it
  }
}

const unplug = (): Promise<string> =>
  runProgram('ovs-vsctl', ['--if-exists', 'del-port', INTEGRATION_BRIDGE, OUTER_INTERFACE])

const messageOf = (namespace: ChildProcess, ended: Promise<void>, expected: string): Promise<Server | undefined> =>
  Promise.race([
    new Promise<Server | undefined>((resolve) =>
      namespace.on('message', (message, handle) => {
        // `metadata-namespace.ts` sends no other messages
        if ((message as { readonly is?: unknown }).is === expected) resolve(handle as Server | undefined)
      }),
    ),
    ended.then(() => {
      throw new Error(`the namespace of the metadata service ended before it was ${expected}`)
    }),
  ])

/** The kernel deletes the interface with the namespace, but its name may remain in the bridge. */
async function plugIn(pid: number, { zone, namespace }: Place): Promise<void> {
  const run = runInside(namespace)
  await unplug()
  await run('ip', ['link', 'delete', OUTER_INTERFACE]).catch(() => '') // usually there is none
  await run('ip', [
    'link',
    'add',
    OUTER_INTERFACE,
    'mtu',
    String(OVN_MTU),
    'type',
    'veth',
    'peer',
    'name',
    INNER_INTERFACE,
    'netns',
    String(pid),
  ])
  // The userspace datapath computes no checksums.
  await run('ethtool', ['-K', OUTER_INTERFACE, 'tx', 'off'])
  await run('ip', ['link', 'set', OUTER_INTERFACE, 'up'])
  await runProgram('ovs-vsctl', [
    'add-port',
    INTEGRATION_BRIDGE,
    OUTER_INTERFACE,
    '--',
    'set',
    'interface',
    OUTER_INTERFACE,
    `external_ids:iface-id=${metadataPort(zone)}`,
  ])
}

function accept(server: Server | undefined, pid: number, take: Take): void {
  const connections = new Map<string, number>()
  if (server === undefined) return
  server.maxConnections = CONNECTIONS_MAXIMUM
  // A client that has closed its sending side still gets an answer.
  Object.assign(server, { allowHalfOpen: true })
  server.on('connection', (socket: Socket) => {
    socket.on('error', () => socket.destroy())
    neighbour(pid, socket.remoteAddress ?? '').then(
      (mark) => {
        const open = connections.get(mark) ?? 0
        if (mark === '' || open >= GUEST_CONNECTIONS_MAXIMUM) return void socket.destroy()
        connections.set(mark, open + 1)
        socket.once('close', () => {
          const left = (connections.get(mark) ?? 1) - 1
          if (left === 0) connections.delete(mark)
          else connections.set(mark, left)
        })
        take(socket, mark)
      },
      () => socket.destroy(),
    )
  })
}

/** The hardware address that the namespace's kernel has for the address; empty when it has none. */
async function neighbour(pid: number, address: string): Promise<string> {
  const lines = (await readFile(`/proc/${pid}/net/arp`, 'utf8')).split('\n').map((line) => line.split(/\s+/))
  return lines.find(([ip]) => ip === address)?.[3] ?? ''
}
