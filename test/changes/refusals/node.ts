import { mirrorNode } from '../../../db/placement/index.ts'
import { Node, type NodeSpec, type NodeStatus } from '../../../resources/node/index.ts'
import { asking, type Row, stanza, type Table } from '../refusals.ts'

const zone = 'eu-1-a'
const { create, edit, remove, ofPlatform } = asking('/nodes', { zone })
const UNKNOWN = '00000000-0000-4000-8000-000000000000'
const BUSY = { operation: stanza('node.cordon') }
let count = 0

interface Host {
  readonly spec?: Partial<NodeSpec>
  readonly status?: Partial<NodeStatus>
  /** Of the server on it; none is there otherwise. */
  readonly memoryMebibytes?: number
}
const host =
  ({ spec = {}, status = {}, memoryMebibytes }: Host = {}): NonNullable<Row['given']> =>
  async ({ cloud, put, accountId }) => {
    const node = `host-${(count += 1)}`
    const known = { state: 'ready', isCordoned: spec.isCordoned === true, isInMaintenance: false, ...status }
    await put(Node, node, { zone, ...spec }, known)
    const total = { cores: 4, memoryMebibytes: 4_194_304, storageGibibytes: 100 }
    const mirrored = { node, zone, rack: 'r', cpuPool: null, dedicatedAccountId: null, isSchedulable: false, total }
    await mirrorNode(cloud.db, mirrored)
    if (memoryMebibytes !== undefined) {
      const room = { cores: 1, memory_mebibytes: memoryMebibytes, storage_gibibytes: 1 }
      const held = { account_id: accountId, server_id: `on-${node}`, zone, node, claimed_at: new Date(), ...room }
      await cloud.db.insertInto('placement').values(held).execute()
    }
    return node
  }
/** Of one that is ready and empty, unless another one is given. */
const edited = (what: string, spec: object, given = host()): Row => ({ ...edit(what, 'it', { spec }), given })
const removed = (what: string, given: Row['given']): Row => ({ ...remove(what, 'it', { rest: false }), given })

/** Operators change nodes: by kubectl, and by separate routes. */
export const TABLE: Table = {
  resource: Node,
  async arrange(scene) {
    scene.ids['plain'] = await host()(scene)
  },
  rows: [
    create('', {}, { rest: false }),
    create('in no zone', { zone: 'nowhere' }, { rest: false }),
    ...ofPlatform('plain', 'node.cordon'),
    edited('cordon', { isCordoned: true }),
    edited('cordon one that is busy', { isCordoned: true }, host({ spec: BUSY })),
    edited('uncordon', { isCordoned: false }, host({ spec: { isCordoned: true }, status: { state: 'cordoned' } })),
    edited('empty', { isInMaintenance: true }),
    edited('empty one that does not answer', { isInMaintenance: true }, host({ status: { state: 'unreachable' } })),
    edited(
      'empty one whose server has no room elsewhere',
      { isInMaintenance: true },
      host({ memoryMebibytes: 5_000_000 }),
    ),
    edited('upgrade the agent', { desiredAgentVersion: '2' }),
    edited('dedicate to an account that is not there', { dedicatedAccountId: UNKNOWN }),
    edited('label so that nobody can read it', { labels: { a: '\u0007' } }),
    removed('one that is not cordoned', host()),
    removed(
      'one with a server',
      host({ spec: { isCordoned: true }, status: { state: 'cordoned' }, memoryMebibytes: 512 }),
    ),
    removed('', host({ spec: { isCordoned: true }, status: { state: 'cordoned' } })),
  ],
}
