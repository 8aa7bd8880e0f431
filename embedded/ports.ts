/** Ports for the listeners of an embedded cloud, chosen before the components start so that a restarted one comes back where it was. */
import { createServer } from 'node:net'
import { StartRefused } from './data-folder.ts'

/** Whether the port can be listened on; with port 0, a free one. Throws the listener's own error otherwise. */
export function probePort(host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen({ host, port, exclusive: true }, () => {
      const address = server.address()
      server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : port))
    })
  })
}

/** The port asked for, or a free one for 0. Throws StartRefused with one clear line when it cannot be had. */
export async function takePort(flag: string, host: string, port: number): Promise<number> {
  try {
    return await probePort(host, port)
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined
    if (code === 'EADDRINUSE') throw new StartRefused(`Port ${port} on ${host} is in use. Stop what uses it, or choose another: npm start -- --${flag} PORT (0 takes a free one)`)
    if (code === 'EACCES') throw new StartRefused(`Port ${port} on ${host} may not be used by this user. Choose another: npm start -- --${flag} PORT`)
    if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND' || code === 'EINVAL' || code === 'EAI_AGAIN') throw new StartRefused(`${host} is not an address of this machine.`)
    throw error
  }
}
