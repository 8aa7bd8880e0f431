/** What nodes have installed of OVN, as the southbound database reports it. */
import { type CopiedRow, openCopy, type TableUpdates } from './copy.ts'
import { connectToLeader, type LeaderOptions } from './leader.ts'
import { monitor, type OvsdbConnection } from './ovsdb.ts'

const DATABASE = 'OVN_Southbound'
const REQUESTS = { SB_Global: [{ columns: ['nb_cfg'] }], Chassis_Private: [{ columns: ['name', 'nb_cfg'] }] }

export interface Installations {
  /** The newest sequence that all of the nodes have installed; undefined when one of them, or the database, is not
   *  known. */
  by(nodes: readonly string[]): Promise<number | undefined>
  close(): void
}

export function openInstalled(remotes: string, options: Pick<LeaderOptions, 'clock' | 'readTls'>): Installations {
  const copy = openCopy(() => 'scalar')
  const at = new Map<string, number>()
  let arrived: number | undefined
  const take = (updates: TableUpdates) => {
    for (const { before, after } of copy.take(updates)) {
      const name = String((after ?? before)?.columns['name'])
      if (after?.table === 'SB_Global') arrived = sequenceOf(after.columns)
      else if (after === undefined) at.delete(name)
      else at.set(name, sequenceOf(after.columns))
    }
  }
  let connection: Promise<OvsdbConnection> | undefined
  const connect = async (): Promise<OvsdbConnection> => {
    const opened = await connectToLeader(remotes, DATABASE, {
      ...options,
      onNotice(method, params) {
        if (method === 'update3') take(params[2] as TableUpdates) // as ovsdb-server(7) says
      },
      onEnd: () => (connection = undefined),
    })
    copy.clear()
    at.clear()
    arrived = undefined
    await monitor(opened, { database: DATABASE, id: 'nodes', requests: REQUESTS }, take)
    return opened
  }
  return {
    async by(nodes) {
      connection ??= connect()
      try {
        await connection
      } catch {
        connection = undefined
        return undefined
      }
      const all = [arrived, ...nodes.map((node) => at.get(node))].filter((one) => one !== undefined)
      return all.length === nodes.length + 1 ? Math.min(...all) : undefined
    },
    close: () => void connection?.then((opened) => opened.close()).catch(() => {}),
  }
}

/** The database omits the value while it is 0. */
const sequenceOf = (columns: CopiedRow['columns']): number => Number(columns['nb_cfg'] ?? 0)
