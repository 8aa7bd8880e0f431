/** Ports for the listeners of an embedded cloud, chosen before the components start so that a restarted one comes back
 *  where it was. Between being chosen and being listened on a port is nobody's: so none is chosen that the system or
 *  another cloud of this machine would take meanwhile. */
import { createServer } from 'node:net'
import { processId } from '../kit/sys/process.ts'
import { StartRefused } from './data-folder.ts'
import { ownerOfPort } from './port-owner.ts'

/** Below those that systems give to whoever does not care which (Linux from 32768 on, others higher). */
const CHOSEN_PORTS = { first: 20_000, count: 10_000 }
/** Each process looks in a stretch of its own, and further only where that is taken. */
const STRETCH_PORTS = 16
let chosen = 0

/** Whether the port can be listened on; with port 0, one that this process has not chosen before. Throws the listener's
 *  own error otherwise. */
export function probePort(host: string, port: number): Promise<number> {
  return port === 0 ? choosePort(host) : listenOnce(host, port)
}

async function choosePort(host: string): Promise<number> {
  for (let tries = 1; ; tries++) {
    const port = CHOSEN_PORTS.first + ((processId() * STRETCH_PORTS + chosen++) % CHOSEN_PORTS.count)
    try {
      return await listenOnce(host, port)
    } catch (error) {
      if (!isInUse(error) || tries === CHOSEN_PORTS.count) throw error
    }
  }
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

/** The port asked for, or a free one for 0. Throws StartRefused with one clear line when it cannot be had. */
export async function takePort(flag: string, host: string, port: number): Promise<number> {
  try {
    return await probePort(host, port)
  } catch (error) {
    const code = codeOf(error)
    if (isInUse(error)) {
      const owner = await ownerOfPort(port)
      throw new StartRefused(
        `Port ${port} on ${host} is in use${owner === undefined ? '' : ` by ${owner}`}. Stop what uses it, or ` +
          `choose another: npm start -- --${flag} PORT (0 takes a free one)`,
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
