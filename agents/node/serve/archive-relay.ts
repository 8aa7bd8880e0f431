/** Relays connections between the machines of databases and the store of their archives, which they cannot reach
 *  otherwise. The data are encrypted between the two ends, and the store identifies its tenants by their keys; the host
 *  can read nothing. */
import { connect, type Socket } from 'node:net'
import type { Clock } from '../../../kit/sys/clock.ts'

export interface ArchiveRelayOptions {
  readonly host: string
  readonly port: number
  /** Whether the guest of the connection's mark is the machine of a database. */
  readonly isDatabase: (mark: string) => boolean
  readonly clock: Clock
}

/** Limit of the time without a byte in either direction. */
const IDLE_MILLISECONDS = 300_000
const CONNECT_MILLISECONDS = 10_000

/** Takes over a connection of a guest; nothing may have been read from it. */
export const archiveRelay =
  ({ host, port, isDatabase, clock }: ArchiveRelayOptions) =>
  (guest: Socket, mark: string): void => {
    if (!isDatabase(mark)) return void guest.destroy()
    const store = connect({ host, port, allowHalfOpen: true })
    const end = () => {
      guest.destroy()
      store.destroy()
    }
    const tooLate = clock.after(CONNECT_MILLISECONDS, end)
    store.once('connect', tooLate)
    for (const socket of [guest, store]) socket.setTimeout(IDLE_MILLISECONDS, end).on('error', end).once('close', end)
    store.once('close', tooLate)
    guest.pipe(store)
    store.pipe(guest)
  }

/** Parses `HOST:PORT` from the environment; an IPv6 address is in brackets. Undefined when the text is invalid. */
export function parseHostPort(text: string): { readonly host: string; readonly port: number } | undefined {
  const [, bracketed, plain, port = ''] = /^(?:\[([0-9a-f:]+)\]|([A-Za-z0-9.-]+)):(\d{1,5})$/.exec(text) ?? []
  const host = bracketed ?? plain
  return host === undefined || Number(port) < 1 || Number(port) > 65_535 ? undefined : { host, port: Number(port) }
}
