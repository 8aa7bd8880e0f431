/** Prevents an account from using all connections: work for one account uses at most its share of the pool, and waits
 *  for one of its own connections when the share is used up. The pool is the only limit of the platform's own work. */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { PostgresPool } from 'kysely'
import type pg from 'pg'

const current = new AsyncLocalStorage<string>()

/** Does the work in the name of the account. */
export const forAccount = <Result>(accountId: string, work: () => Result): Result => current.run(accountId, work)

/** A quarter of the pool, and never less than two connections. */
export const shareOf = (connectionsMaximum: number): number => Math.max(2, Math.ceil(connectionsMaximum / 4))

interface Waiting {
  readonly enter: () => void
}

interface Seats {
  count: number
  readonly waiting: Set<Waiting>
}

export interface ShareOptions {
  /** Of one account. */
  readonly connectionsMaximum: number
  readonly waitMillisecondsMaximum: number
  /** Calls back after the time, unless it is cancelled. */
  readonly after: (milliseconds: number, work: () => void) => () => void
}

/** The pool with the limit: the part that Kysely needs of it. */
export function shared(pool: pg.Pool, options: ShareOptions): PostgresPool {
  const seats = new Map<string, Seats>()
  const leave = (accountId: string, of: Seats): void => {
    const [next] = of.waiting
    if (next !== undefined) {
      of.waiting.delete(next)
      return next.enter() // takes the seat over
    }
    of.count--
    if (of.count === 0) seats.delete(accountId)
  }
  return {
    options: pool.options,
    end: () => pool.end(),
    async connect() {
      const accountId = current.getStore()
      if (accountId === undefined) return pool.connect()
      const of = seats.get(accountId) ?? { count: 0, waiting: new Set() }
      seats.set(accountId, of)
      if (of.count < options.connectionsMaximum) of.count++
      else await turnIn(of, options)
      try {
        return releasing(await pool.connect(), () => leave(accountId, of))
      } catch (error) {
        leave(accountId, of)
        throw error
      }
    },
  }
}

/** Throws what the pool throws when no connection is available for too long. */
const turnIn = ({ waiting }: Seats, { waitMillisecondsMaximum, after }: ShareOptions): Promise<void> =>
  new Promise((resolve, reject) => {
    const place: Waiting = {
      enter() {
        cancel()
        resolve()
      },
    }
    const cancel = after(waitMillisecondsMaximum, () => {
      waiting.delete(place)
      reject(new Error('timeout exceeded when trying to connect'))
    })
    waiting.add(place)
  })

/** The pool sets a new release function on the client at each checkout. */
function releasing(client: pg.PoolClient, released: () => void): pg.PoolClient {
  const { release } = client
  client.release = (error) => {
    client.release = release
    release.call(client, error)
    released()
  }
  return client
}
