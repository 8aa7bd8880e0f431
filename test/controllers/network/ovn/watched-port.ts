/** Which hosts have had a port, as the southbound database has said it from change to change. */
import { openCopy, type TableUpdates } from '../../../../controllers/network/ovn/copy.ts'
import { connectOvsdb, monitor } from '../../../../controllers/network/ovn/ovsdb.ts'
import { systemClock as clock } from '../../../../kit/sys/clock.ts'

const DATABASE = 'OVN_Southbound'

export interface PortState {
  /** The host that has the port; undefined when none has. */
  readonly chassis: string | undefined
  /** Hosts to which the port is let besides, where nothing of it passes before its guest speaks there. */
  readonly others: readonly string[]
}

export interface WatchedPort {
  /** One after the other, since the beginning or the last `forget`. */
  states(): readonly PortState[]
  /** The hosts that have had it, one after the other. */
  chassis(): readonly string[]
  /** All but what is now. */
  forget(): void
  close(): void
}

export async function watchPort(southbound: string, name: string): Promise<WatchedPort> {
  const copy = openCopy((_, column) => (column === 'additional_chassis' ? 'set' : 'scalar'))
  const names = new Map<string, string>()
  let seen: PortState[] = []
  const nameOf = (value: unknown) => names.get(String(Array.isArray(value) ? value[1] : value))
  const othersOf = (value: unknown): readonly unknown[] =>
    Array.isArray(value) && value[0] === 'set' ? (value[1] as readonly unknown[]) : value === undefined ? [] : [value]
  const take = (updates: TableUpdates) => {
    const changes = copy.take(updates)
    for (const { uuid, after } of changes)
      if (after?.table === 'Chassis') names.set(uuid, String(after.columns['name']))
    for (const { after } of changes)
      if (after?.table === 'Port_Binding')
        seen.push({
          chassis: nameOf(after.columns['chassis']),
          others: othersOf(after.columns['additional_chassis']).map((each) => String(nameOf(each))),
        })
  }
  const connection = connectOvsdb(southbound, {
    clock,
    onNotice(method, params) {
      if (method === 'update3') take(params[2] as TableUpdates) // as ovsdb-server(7) says
    },
  })
  const requests = {
    Chassis: [{ columns: ['name'] }],
    Port_Binding: [{ columns: ['chassis', 'additional_chassis'], where: [['logical_port', '==', name]] }],
  }
  await monitor(connection, { database: DATABASE, id: 'watched', requests }, take)
  return {
    states: () => seen,
    chassis: () =>
      seen.flatMap(({ chassis }) => chassis ?? []).filter((chassis, at, all) => at === 0 || chassis !== all[at - 1]),
    forget: () => (seen = seen.slice(-1)),
    close: () => connection.close(),
  }
}
