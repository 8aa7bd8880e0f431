/** Ports for the listeners of an embedded cloud. They are chosen before the components start, so that a restarted
 *  component uses the same port. A chosen port is reserved until its process exits, even while nobody listens on it.
 *  Ports that the system or another cloud of this machine might use are not chosen (decision 124). */
import { createSocket, type Socket } from 'node:dgram'
import { createServer } from 'node:net'
import { processId } from '../../kit/sys/process.ts'
import { StartRefused } from './data-folder.ts'
import { ownerOfPort } from './port-owner.ts'

/** Below the range that systems use for automatic ports (Linux from 32768 on, others higher). */
const CHOSEN_PORTS = { first: 20_000, count: 10_000 }
/** Distance between the first ports of processes with adjacent ids, so that two that start together seldom collide. */
const STRETCH_PORTS = 16
const LOOPBACK = '127.0.0.1'
let chosen = 0
/** Ports that this process holds. */
const held = new Map<number, Promise<Socket>>()

/** Checks that the port can be listened on; with port 0, chooses one that this process has not chosen before. Reserves
 *  it. Throws the listener's error. */
export async function probePort(host: string, port: number): Promise<number> {
  if (port === 0) return choosePort(host)
  if (!isChosen(port)) return listenOnce(host, port)
  const isNew = !held.has(port)
  await holdPort(port)
  return listenOnce(host, port).catch(async (error: unknown) => {
    if (isNew) await releasePort(port)
    throw error
  })
}

async function choosePort(host: string): Promise<number> {
  for (let tries = 1; ; tries++) {
    const port = CHOSEN_PORTS.first + ((processId() * STRETCH_PORTS + chosen++) % CHOSEN_PORTS.count)
    try {
      if (!held.has(port)) return await probePort(host, port)
    } catch (error) {
      if (!isInUse(error)) throw error
    }
    if (tries === CHOSEN_PORTS.count) throw new Error('every port that could be chosen is in use')
  }
}

const isChosen = (port: number): boolean => port >= CHOSEN_PORTS.first && port < CHOSEN_PORTS.first + CHOSEN_PORTS.count

/** Reserves the port until this process exits, through the UDP port of the same number, which the system gives to only
 *  one process. Throws EADDRINUSE when another process holds it. */
export async function holdPort(port: number): Promise<void> {
  const socket = held.get(port) ?? takeSocket(port)
  held.set(port, socket)
  await socket.catch((error: unknown) => {
    held.delete(port)
    throw error
  })
}

function takeSocket(port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = createSocket('udp4')
    socket.once('error', (error) => {
      socket.close()
      reject(error)
    })
    socket.bind({ address: LOOPBACK, port, exclusive: true }, () => resolve(socket.unref()))
  })
}

/** For a port on which nobody will listen again. */
export async function releasePort(port: number): Promise<void> {
  const socket = await held.get(port)
  held.delete(port)
  socket?.close()
}

function listenOnce(host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(port)))
  })
}

const codeOf = (error: unknown): unknown => (error instanceof Error && 'code' in error ? error.code : undefined)
const isInUse = (error: unknown): boolean => codeOf(error) === 'EADDRINUSE'

/** Reserves a fixed port. Throws StartRefused with one clear line when it is unavailable. */
export async function keepPort(port: number, what: string): Promise<number> {
  try {
    await holdPort(port)
    return port
  } catch (error) {
    if (!isInUse(error)) throw error
    const owner = await ownerOfPort(port)
    throw new StartRefused(`Port ${port}, ${what}, is in use${byWhom(owner)}. Stop what uses it and start again.`)
  }
}

const byWhom = (owner: string | undefined): string => (owner === undefined ? '' : ` by ${owner}`)

/** The requested port, or a free one for 0. Throws StartRefused with one clear line when it is unavailable. */
export async function takePort(flag: string, host: string, port: number): Promise<number> {
  try {
    return await probePort(host, port)
  } catch (error) {
    const code = codeOf(error)
    if (isInUse(error)) {
      const owner = await ownerOfPort(port)
      throw new StartRefused(
        `Port ${port} on ${host} is in use${byWhom(owner)}. Stop what uses it, or choose another: npm start -- ` +
          `--${flag} PORT (0 takes a free one)`,
      )
    }
    if (code === 'EACCES')
      throw new StartRefused(
        `Port ${port} on ${host} may not be used by this user. Choose another: npm start -- --${flag} PORT`,
      )
    if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND' || code === 'EINVAL' || code === 'EAI_AGAIN')
      throw new StartRefused(`${host} is not an address of this machine.`)
    throw error
  }
}
