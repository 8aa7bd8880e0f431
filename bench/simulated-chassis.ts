/** Simulated hosts in the southbound database of a real OVN: they claim the ports that are meant for them, and report
 *  that they have installed what they received. No packet reaches them. */
import { openCopy, type TableUpdates } from '../controllers/network/ovn/copy.ts'
import { connectOvsdb, monitor, type OvsdbOperation } from '../controllers/network/ovn/ovsdb.ts'
import { systemClock as clock } from '../kit/sys/clock.ts'

const DATABASE = 'OVN_Southbound'
/** Few: OVN recomputes for each of them. */
const PORTS_PER_TRANSACTION_MAXIMUM = 10_000
/** A database that computes for all hosts of a large zone answers nobody meanwhile. */
const CALL_MILLISECONDS = 900_000

/** Their names. */
export const simulatedNodes = (count: number): readonly string[] =>
  Array.from({ length: count }, (_, index) => `c${index}`)

const join = (name: string, index: number): readonly OvsdbOperation[] => [
  {
    op: 'insert',
    table: 'Encap',
    'uuid-name': `encap_${name}`,
    row: { type: 'geneve', ip: `192.0.3.${index + 1}`, chassis_name: name },
  },
  {
    op: 'insert',
    table: 'Chassis',
    'uuid-name': `chassis_${name}`,
    row: { name, hostname: name, encaps: ['named-uuid', `encap_${name}`] },
  },
  { op: 'insert', table: 'Chassis_Private', row: { name, chassis: ['named-uuid', `chassis_${name}`] } },
]

/** Opens as many, until it is closed. */
export async function openSimulatedChassis(southbound: string, count: number) {
  const names = simulatedNodes(count)
  const copy = openCopy(() => 'scalar')
  const due = new Map<string, unknown>()
  let sequence = 0
  let isWorking = false
  let isClosed = false

  const note = (updates: TableUpdates) => {
    for (const { uuid, after } of copy.take(updates)) {
      if (after?.table === 'SB_Global') sequence = Number(after.columns['nb_cfg'] ?? 0)
      const wanted = after?.table === 'Port_Binding' ? after.columns['requested_chassis'] : undefined
      if (isReference(wanted) && !isReference(after?.columns['chassis'])) due.set(uuid, wanted)
    }
    if (!isWorking) void work()
  }
  const connection = connectOvsdb(southbound, {
    clock,
    callMilliseconds: CALL_MILLISECONDS,
    onNotice: (method, params) => {
      if (method === 'update3') note(params[2] as TableUpdates) // as ovsdb-server(7) says
    },
  })
  let installed = 0
  async function work(): Promise<void> {
    isWorking = true
    while (!isClosed && (due.size > 0 || installed < sequence)) {
      const claims = [...due].slice(0, PORTS_PER_TRANSACTION_MAXIMUM)
      for (const [uuid] of claims) due.delete(uuid)
      const reached = due.size === 0 ? sequence : installed
      await connection
        .transact(DATABASE, [
          ...claims.map(([uuid, chassis]) => ({
            op: 'update',
            table: 'Port_Binding',
            where: [['_uuid', '==', ['uuid', uuid]]],
            row: { chassis, up: true },
          })),
          ...(reached === installed ? [] : names.map((name) => raise(name, reached))),
        ])
        .catch(() => (isClosed = true))
      installed = reached
    }
    isWorking = false
  }

  if (count > 0) {
    await connection.transact(DATABASE, names.flatMap(join))
    const columns = ['requested_chassis', 'chassis']
    const requests = {
      SB_Global: [{ columns: ['nb_cfg'] }],
      Port_Binding: [{ columns, where: [['type', '==', '']] }],
    }
    await monitor(connection, { database: DATABASE, id: 'simulated', requests }, note)
  }
  return {
    close() {
      isClosed = true
      connection.close()
    },
  }
}

const raise = (name: string, sequence: number): OvsdbOperation => ({
  op: 'update',
  table: 'Chassis_Private',
  where: [['name', '==', name]],
  row: { nb_cfg: sequence },
})

const isReference = (value: unknown): boolean => Array.isArray(value) && value[0] === 'uuid'
