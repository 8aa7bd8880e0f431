/** Checks that an address accepts connections. Call it before QEMU connects there, because QEMU blocks while it
 *  connects. */
import { connect } from 'node:net'
import type { Clock } from '../../../../kit/sys/clock.ts'
import { runInside } from '../network/namespace.ts'

const TIMEOUT_MILLISECONDS = 3_000

/** The same from inside a network namespace. */
export async function assertReachableInside(namespace: string, host: string, port: number): Promise<void> {
  const connect = ['bash', '-c', 'exec 3<>"/dev/tcp/$0/$1"', host, String(port)]
  await runInside(namespace)('timeout', [String(TIMEOUT_MILLISECONDS / 1_000), ...connect])
}

/** Resolves once a connection was made and closed; rejects when that fails or takes too long. */
export function assertReachable(host: string, port: number, clock: Clock): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port })
    const cancelTimer = clock.after(TIMEOUT_MILLISECONDS, () =>
      end(() => reject(new Error(`${host}:${port} does not answer`))),
    )
    const end = (then: () => void) => {
      cancelTimer()
      socket.removeAllListeners()
      socket.on('error', () => {})
      socket.destroy()
      then()
    }
    socket.once('connect', () => end(resolve))
    socket.once('error', (error) => end(() => reject(error)))
  })
}
