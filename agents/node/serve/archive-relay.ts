/** Passes what the machines of databases say to the store of their archives, and back: they have no other way there.
 *  What is said is encrypted between the two, and the store knows its tenants by their keys; the host reads nothing. */
import { connect, type Socket } from 'node:net'
import type { Clock } from '../../../kit/sys/clock.ts'

export interface ArchiveRelayOptions {
  readonly host: string
  readonly port: number
  /** Whether the guest that the connection is known by is the machine of a database. */
  readonly isDatabase: (mark: string) => boolean
  readonly clock: Clock
}

/** Without a byte either way. */
const IDLE_MILLISECONDS = 300_000
const CONNECT_MILLISECONDS = 10_000

/** Takes a connection of a guest, of which nothing may have been read. */
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

/** `HOST:PORT`, as the environment has it; the host of an IPv6 address in brackets. Undefined for what is none. */
export function parseHostPort(text: string): { readonly host: string; readonly port: number } | undefined {
  const [, bracketed, plain, port = ''] = /^(?:\[([0-9a-f:]+)\]|([A-Za-z0-9.-]+)):(\d{1,5})$/.exec(text) ?? []
  const host = bracketed ?? plain
  return host === undefined || Number(port) < 1 || Number(port) > 65_535 ? undefined : { host, port: Number(port) }
}
