/** Starts and stops servers of Node.js that listen. */
import type { Server as HttpServer } from 'node:http'
import type { ListenOptions, Server } from 'node:net'

/** Returns the port once the server listens; 0 for a socket in the file system. Throws the error that keeps it from
 *  listening. A later connection that cannot be accepted does not end the process. */
export async function listen(server: Server, options: ListenOptions): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.on('error', reject)
    server.listen(options, resolve)
  })
  const address = server.address()
  return typeof address === 'object' && address !== null ? address.port : 0
}

/** Stops listening and closes all connections. Resolves when none is left. */
export const closeNow = (server: HttpServer): Promise<void> =>
  new Promise((resolve) => {
    server.close(() => resolve())
    server.closeAllConnections()
  })
