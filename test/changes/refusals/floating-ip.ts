import { newUuid, systemRandom } from '../../../kit/sys/random.ts'
import { FloatingIp } from '../../../resources/floating-ip/index.ts'
import { asking, makeGuest, type Scene, type Table, WHY } from '../refusals.ts'

const zone = 'eu-1-a'
const { create, change, remove, request, ofPlatform, creationNeeds } = asking('/floating-ips', { zone })
const assigned = (what: string, of: string, spec: object, body: Readonly<Record<string, unknown>>) =>
  change(what, of, { ...spec }, { method: 'POST', suffix: '/assign', rest: body })
const assign = (what: string, of: string, serverId: string, target = 'public') =>
  assigned(`assign ${what}`.trim(), of, { serverId, target }, { server_id: serverId, target })
const unassign = (what: string, of: string) =>
  assigned(`unassign ${what}`.trim(), of, { serverId: undefined, target: undefined }, { server_id: null })

export const TABLE: Table = {
  resource: FloatingIp,
  async arrange(scene: Scene) {
    const { make, request, claim, ids, cloud, accountId } = scene
    await make('back', '/networks', { zone, name: 'back' })
    await make('lone', '/networks', { zone, name: 'lone' })
    await make('out', '/routers', { zone, name: 'out', network_ids: [':back'], nat_enabled: true })
    await makeGuest('web', ':back', scene)
    await makeGuest('db', ':back', scene)
    await makeGuest('far', ':lone', scene)
    for (const name of ['free', 'spare', 'unused', 'released']) await make(name, '/floating-ips', { zone })
    for (const [name, isBusy] of [
      ['taken', false],
      ['moving', false],
      ['lost', false],
      ['busy', true],
    ] as const)
      await make(name, '/floating-ips', { zone, server_id: ':web', target: 'private::back' }, { isBusy })
    await request('DELETE', '/floating-ips/:released')
    for (const name of ['away', 'leaving']) await makeGuest(name, undefined, scene)
    await claim(async (tx) => {
      await tx
        .updateTable('placement')
        .set({ zone: 'bare' })
        .where('server_id', '=', ids['away'] ?? '')
        .execute()
      const at = { zone: 'bare', node: cloud.node, reserved_at: new Date() }
      const room = { cores: 1, memory_mebibytes: 64, storage_gibibytes: 1 }
      const move = { account_id: accountId, server_id: ids['leaving'] ?? '', operation_id: newUuid(systemRandom) }
      await tx
        .insertInto('placement_target')
        .values({ ...move, ...at, ...room })
        .execute()
    })
  },
  rows: [
    create('in no zone', { zone: 'nowhere' }),
    create('in a zone without networks', { zone: 'bare' }),
    create('in a closed zone', { zone: 'closed' }),
    create('in a zone without addresses', { zone: 'imageless' }),
    create('with an address of its choice', { address: '198.51.100.3' }, { differs: WHY.noField }),
    create(
      'with a target of no server',
      { target: 'public' },
      { differs: 'the target has a default in REST, which ignores it without a server' },
    ),
    create('for a server that is not there', { serverId: 'nobody' }, { differs: WHY.pending }),
    create('for a server without a public address', { serverId: ':web' }),
    create('for what is no target', { serverId: ':web', target: 'somewhere' }),
    ...creationNeeds('address', 'credit', 'quota'),
    ...ofPlatform('free', 'floating_ip.sync'),
    create(''),

    assign('to a server that is not there', 'free', 'nobody'),
    assign('to a server without a public address', 'free', ':web'),
    assign('to a server that is not in the network', 'free', ':far', 'private::back'),
    assign('to a network without NAT', 'free', ':far', 'private::lone'),
    assign('to a server of another zone', 'free', ':away'),
    assign('to a server that moves to another zone', 'free', ':leaving'),
    assign('one that is being released', 'released', ':db', 'private::back'),
    assign('one that is busy', 'busy', ':db', 'private::back'),
    assign('', 'free', ':db', 'private::back'),
    assign('to another server', 'moving', ':db', 'private::back'),
    unassign('', 'lost'),
    unassign('one that is assigned to none', 'spare'),
    unassign('one that is busy', 'busy'),
    request('assign one that is not there', 'POST', '/nothing/assign', { server_id: ':web' }),
    change('move', 'spare', { zone: 'bare' }, { rest: false }),
    change('change the address', 'spare', { address: '198.51.100.3' }, { rest: false }),

    remove('one that is assigned', 'taken'),
    remove('one that is busy', 'busy', { differs: WHY.deletionWaits }),
    remove('one that is being released', 'released', { differs: WHY.deletionWaits }),
    remove('', 'unused'),
  ],
}
