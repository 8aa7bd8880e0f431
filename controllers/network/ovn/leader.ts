/** A connection to the leader of a database that several servers may share. */
import { Unavailable } from '../../../domain/problem.ts'
import { connectOvsdb, type ConnectionOptions, type OvsdbConnection } from './ovsdb.ts'
import type { OvsdbTls } from './tls.ts'

export interface LeaderOptions extends Omit<ConnectionOptions, 'tls'> {
  /** Called for every connection to a remote of `ssl:`, because certificates are renewed. */
  readonly readTls?: (() => Promise<OvsdbTls>) | undefined
}

interface Server {
  readonly leader?: boolean
  readonly connected?: boolean
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
  const opened: OvsdbConnection = connectOvsdb(remote, {
    ...options,
    tls,
    onNotice(method, params) {
      if (method !== 'update') return options.onNotice?.(method, params)
      // As RFC 7047 says; only servers are monitored this way.
      const [, tables] = params as [
        unknown,
        { readonly Database?: Readonly<Record<string, { readonly new?: Server }>> },
      ]
      if (Object.values(tables.Database ?? {}).some((row) => row.new?.leader === false)) opened.close()
    },
  })
  try {
    const where = [['name', '==', database]]
    const columns = ['leader', 'connected']
    const [answer] = await opened.transact('_Server', [{ op: 'select', table: 'Database', where, columns }])
    const [server] = (answer?.rows ?? []) as readonly Server[] // as ovsdb-server(7) says
    if (server?.leader !== true || server.connected !== true) throw new Unavailable(`the leader of ${database}`)
    const select = { initial: false }
    await opened.call('monitor', ['_Server', 'server', { Database: [{ columns: ['leader'], select }] }])
    return opened
  } catch (error) {
    opened.close()
    throw error
  }
}
