/** Unix sockets in folders whose path may be longer than the 107 bytes that an address holds. */
import { closeSync, openSync } from 'node:fs'
import { connect, type OnReadOpts, type Socket } from 'node:net'
import { basename, dirname } from 'node:path'
import { defined } from '../../../../domain/defined.ts'

const SOCKET_PATH_BYTES_MAXIMUM = 107

/** Connects to the socket file; rejects with the system's error. Callers must handle the socket's later errors. With
 *  `onread`, all data goes there through its single buffer, and the socket emits no `data` events. */
export function connectLocalSocket(path: string, onread?: OnReadOpts): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const isLong = Buffer.byteLength(path) > SOCKET_PATH_BYTES_MAXIMUM
    // Linux resolves the descriptor of the open folder, so only the length of the file's own name counts.
    const folder = isLong ? openSync(dirname(path), 'r') : undefined
    const socket = connect({
      path: folder === undefined ? path : `/proc/self/fd/${folder}/${basename(path)}`,
      ...defined({ onread }),
    })
    const finish = (then: () => void) => {
      socket.removeAllListeners()
      if (folder !== undefined) closeSync(folder)
      then()
    }
    socket.once('connect', () => finish(() => resolve(socket)))
    socket.once('error', (error) => finish(() => reject(error)))
  })
}
