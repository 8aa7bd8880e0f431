/** A connection to the leader of a database that several servers may share. */
import { Unavailable } from '../../../domain/problem.ts'
import { connectOvsdb, type ConnectionOptions, type OvsdbConnection } from './ovsdb.ts'
import type { OvsdbTls } from './tls.ts'

export interface LeaderOptions extends Omit<ConnectionOptions, 'tls'> {
  /** Called for every connection to a remote of `ssl:`, because certificates are renewed. */
  readonly readTls?: (() => Promise<OvsdbTls>) | undefined
}

/** A row of the table `Database`, as ovsdb-server(7) says. */
interface DatabaseRow {
  readonly name?: string
  readonly leader?: boolean
  readonly connected?: boolean
}

/** Rows by their id: as they are, or `new` after a change and absent after a removal. */
interface ServedUpdates {
  readonly Database?: Readonly<Record<string, { readonly old?: DatabaseRow; readonly new?: DatabaseRow }>>
}

/** Connects to the first of the remotes, separated by commas, that answers and leads. The connection closes when it no
 *  longer leads. Throws Unavailable when none does. */
export async function connectToLeader(
  remotes: string,
  database: string,
  options: LeaderOptions,
): Promise<OvsdbConnection> {
  let failure: unknown
  for (const remote of remotes.split(',')) {
    try {
      return await connectIfLeader(remote.trim(), database, options)
    } catch (error) {
      failure = error
    }
  }
  throw failure
}

async function connectIfLeader(
  remote: string,
  database: string,
  { readTls, ...options }: LeaderOptions,
): Promise<OvsdbConnection> {
  const tls = remote.startsWith('ssl:') ? await readTls?.() : undefined
  let isLeader = false
  const take = ({ Database: rows = {} }: ServedUpdates) => {
    for (const { old, new: row } of Object.values(rows))
      if ((row ?? old)?.name === database) isLeader = row?.leader === true && row.connected === true
  }
  const opened: OvsdbConnection = connectOvsdb(remote, {
    ...options,
    tls,
    onNotice(method, params) {
      if (method !== 'update') return options.onNotice?.(method, params)
      take(params[1] as ServedUpdates) // as RFC 7047 says; only servers are monitored this way
      if (!isLeader) opened.close()
    },
  })
  try {
    // One call both answers who leads and reports each later change: none is missed in between.
    const columns = ['name', 'leader', 'connected']
    await opened.call(
      'monitor',
      ['_Server', 'server', { Database: [{ columns }] }],
      (rows) => take(rows as ServedUpdates), // as RFC 7047 says
    )
    if (!isLeader) throw new Unavailable(`the leader of ${database}`)
    return opened
  } catch (error) {
    opened.close()
    throw error
  }
}
