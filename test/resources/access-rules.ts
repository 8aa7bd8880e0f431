/** Who may do what in Kubernetes, tried as the very user, wherever the kinds are served: by the embedded API server and
 *  by a real one. */
import { expect } from 'vitest'
import { installRoles } from '../../controllers/kit/roles.ts'
import { Event, type KubeObject, Lease, Namespace, type ResourceType, Secret } from '../../kit/kube/object.ts'
import { ApiError, type Store } from '../../kit/kube/store.ts'
import { Instance, NodeReport, Volume } from '../../resources/instance/index.ts'
import { Operation } from '../../resources/operation/index.ts'
import { Node } from '../../resources/node/index.ts'
import { Plan, Zone } from '../../resources/catalog/stored.ts'
import { Server } from '../../resources/server/stored.ts'
import { Storage } from '../../resources/storage/index.ts'

const RBAC = { group: 'rbac.authorization.k8s.io', version: 'v1' } as const
const RoleBinding: ResourceType<undefined> = {
  ...RBAC,
  kind: 'RoleBinding',
  plural: 'rolebindings',
  scope: 'Namespaced',
}
const ClusterRoleBinding: ResourceType<undefined> = {
  ...RBAC,
  kind: 'ClusterRoleBinding',
  plural: 'clusterrolebindings',
  scope: 'Cluster',
}
const AT = '2026-01-01T00:00:00Z'
const OWN = 'acct-11111111-0000-4000-8000-000000000001'
const FOREIGN = 'acct-22222222-0000-4000-8000-000000000002'

/** Yes when the API server let it pass, whatever came of it; no when the user had no right to it. */
export async function may(attempt: Promise<unknown>): Promise<boolean> {
  const answer = await attempt.catch((error: unknown) => error)
  if (answer instanceof ApiError) return !(answer.code === 403 && answer.reason === 'Forbidden')
  if (answer instanceof Error) throw answer
  return true
}

/** Each attempt that was judged otherwise than expected. */
async function wrong(
  attempts: readonly (readonly [what: string, isAllowed: boolean, attempt: () => Promise<unknown>])[],
): Promise<string[]> {
  const found: string[] = []
  for (const [what, isAllowed, attempt] of attempts)
    if ((await may(attempt())) !== isAllowed) found.push(`${what} is ${isAllowed ? 'refused' : 'allowed'}`)
  return found
}

const make = (store: Store, namespace: string, name = 'web') =>
  store.create(Server, {
    metadata: { name, namespace },
    spec: { hostname: name, zone: 'z1', plan: 'tiny', template: 'tiny-linux' } as never,
  })
const drop = (store: Store, type: ResourceType, namespace: string, name = 'web') =>
  store.delete(type, { namespace, name })

/** People with a role in one account: what they may do there, and that they see nothing else. `as` is the store of a
 *  user. */
export async function tryAccountRoles(admin: Store, as: (user: string) => Store): Promise<void> {
  await installRoles(admin)
  await installRoles(admin)
  for (const name of [OWN, FOREIGN]) {
    await admin.create(Namespace, { metadata: { name }, spec: {} })
    await make(admin, name)
  }
  const bind = (role: string, subject: string) => ({
    metadata: { name: `${role}-${subject}`, namespace: OWN },
    spec: undefined,

    subjects: [{ kind: 'User', apiGroup: RBAC.group, name: subject }],
    roleRef: { apiGroup: RBAC.group, kind: 'ClusterRole', name: `svccloud:${role}` },
  })
  for (const role of ['owner', 'admin', 'member', 'viewer'])
    await admin.create(RoleBinding, bind(role, `${role}@example.com`))
  const {
    metadata: { namespace: _namespace, ...metadata },
    ...catalog
  } = bind('catalog', 'viewer@example.com')
  await admin.create(ClusterRoleBinding, { metadata, ...catalog })

  for (const role of ['owner', 'admin', 'member', 'viewer']) {
    const user = as(`${role}@example.com`)
    const isWriter = role !== 'viewer'
    expect(
      await wrong([
        ['reading servers', true, () => user.list(Server, { namespace: OWN })],
        ['reading one', true, () => user.get(Server, { namespace: OWN, name: 'web' })],
        ['reading storages', true, () => user.list(Storage, { namespace: OWN })],
        ['reading operations', true, () => user.list(Operation, { namespace: OWN })],
        ['reading events', true, () => user.list(Event, { namespace: OWN })],
        ['reading events as kubectl describe does', true, () => user.list({ ...Event, group: '' }, { namespace: OWN })],
        ['making a server', isWriter, () => make(user, OWN, `by-${role}`)],
        [
          'changing a server',
          isWriter,
          () => user.patch(Server, { namespace: OWN, name: 'web' }, { spec: { title: role } }),
        ],
        ['deleting a server', isWriter, () => drop(user, Server, OWN, `by-${role}`)],
        [
          'giving user data',
          isWriter,
          () => user.create(Secret, { metadata: { name: `data-${role}`, namespace: OWN }, spec: undefined, data: {} }),
        ],
        ['listing secrets', false, () => user.list(Secret, { namespace: OWN })],
        [
          'writing a status',
          false,
          () => user.patch(Server, { namespace: OWN, name: 'web' }, { status: { state: 'started' } }, 'status'),
        ],
        [
          'making an operation',
          false,
          () => user.create(Operation, { metadata: { name: 'op', namespace: OWN }, spec: {} as never }),
        ],
        ['deleting a storage', isWriter, () => drop(user, Storage, OWN)],
        ['reading another account', false, () => user.list(Server, { namespace: FOREIGN })],
        ['reading one of another account', false, () => user.get(Server, { namespace: FOREIGN, name: 'web' })],
        ['writing in another account', false, () => make(user, FOREIGN, 'intruder')],
        ['reading all servers', false, () => user.list(Server)],
        ['reading namespaces', false, () => user.list(Namespace)],
        ['giving itself rights', false, () => user.create(RoleBinding, bind('owner', 'mallory'))],
        ['reading zones', role === 'viewer', () => user.list(Zone)],
        ['making plans', false, () => user.create(Plan, { metadata: { name: 'free' }, spec: {} as never })],
        ['reading hosts', false, () => user.list(Node)],
      ]),
      role,
    ).toEqual([])
  }
}

const STOLEN_INTERFACE = {
  macAddress: '52:54:00:00:00:01',
  kind: 'public',
  ipv4: { address: '203.0.113.77', prefix: 26, gateway: '203.0.113.65' },
}

export const instanceOf = (
  name: string,
  node: string,
): { readonly metadata: KubeObject['metadata']; readonly spec: never } => ({
  metadata: { name, namespace: `node-${node}` },
  spec: {
    server: { namespace: OWN, name, uid: 'u' },
    hostname: name,
    power: 'running',
    incarnation: 1,
    cores: 1,
    memoryMebibytes: 192,
    disks: [{ volume: 'v', serial: 's' }],
    interfaces: [],
    template: 't',
    metadata: { isEnabled: true, id: name, title: '', zone: 'z', region: 'r', plan: 'p', publicKeys: [], labels: {} },
  } as never, // as the controllers write it
})

/** Two hosts and an account: each agent does its work in the namespace of its node, and reaches nothing else. The
 *  namespaces of the nodes `n1` and `n2` are there, and what gives the agents their rights. `agentOf` is the store of a
 *  node's agent. */
export async function tryConfinement(admin: Store, agentOf: (node: string) => Store): Promise<void> {
  if ((await admin.get(Namespace, { name: OWN })) === undefined)
    await admin.create(Namespace, { metadata: { name: OWN }, spec: {} })
  await make(admin, OWN, 'confined')
  await admin.create(Secret, { metadata: { name: 'user-data', namespace: OWN }, spec: undefined, data: {} })
  for (const node of ['n1', 'n2']) {
    await admin.create(Instance, instanceOf('guest', node))
    await admin.create(Volume, {
      metadata: { name: 'disk', namespace: `node-${node}` },
      spec: { storage: { namespace: OWN, name: 'disk', uid: 'u' }, sizeGibibytes: 1 },
    })
    await admin.create(Secret, {
      metadata: { name: 'agent-access', namespace: `node-${node}` },
      spec: undefined,
      data: {},
    })
  }
  for (const [node, other] of [
    ['n1', 'n2'],
    ['n2', 'n1'],
  ] as const) {
    const agent = agentOf(node)
    const work = (at: string, isAllowed: boolean) => {
      const namespace = `node-${at}`
      return [
        [`${at}: reading guests`, isAllowed, () => agent.list(Instance, { namespace })],
        [`${at}: reading disks`, isAllowed, () => agent.list(Volume, { namespace })],
        [
          `${at}: telling of a guest`,
          isAllowed,
          () =>
            agent.patch(
              Instance,
              { namespace, name: 'guest' },
              { status: { state: 'running', incarnation: 1 } },
              'status',
            ),
        ],
        [
          `${at}: telling of a disk`,
          isAllowed,
          () => agent.patch(Volume, { namespace, name: 'disk' }, { status: { state: 'ready' } }, 'status'),
        ],
        [
          `${at}: taking the address of another guest`,
          false,
          () => agent.patch(Instance, { namespace, name: 'guest' }, { spec: { interfaces: [STOLEN_INTERFACE] } }),
        ],
        [`${at}: claiming another guest`, false, () => agent.apply(Instance, instanceOf('guest-of-another-host', at))],
        [
          `${at}: changing a disk`,
          false,
          () => agent.patch(Volume, { namespace, name: 'disk' }, { spec: { sizeGibibytes: 2 } }),
        ],
        [
          `${at}: letting a guest go`,
          false,
          () => agent.patch(Instance, { namespace, name: 'guest' }, { metadata: { finalizers: [] } }),
        ],
        [
          `${at}: reporting`,
          isAllowed,
          () =>
            agent.apply(NodeReport, {
              metadata: { name: 'node', namespace },
              spec: {
                agentVersion: '1',
                bootId: 'b',
                logicalCpus: 1,
                memoryMebibytes: 1,
                storageGibibytes: 1,
                hypervisor: 'simulated',
                features: [],
              },
            }),
        ],
        [
          `${at}: its heartbeat`,
          isAllowed,
          () =>
            agent.apply(Lease, {
              metadata: { name: 'heartbeat', namespace },
              spec: { renewTime: '2026-01-01T00:00:00.000000Z' },
            }),
        ],
        [`${at}: its access`, isAllowed, () => agent.get(Secret, { namespace, name: 'agent-access' })],
        [`${at}: its namespace`, isAllowed, () => agent.get(Namespace, { name: namespace })],
        [`${at}: making a guest`, false, () => agent.create(Instance, instanceOf('made', at))],
        [`${at}: removing a guest`, false, () => drop(agent, Instance, namespace, 'guest')],
        [`${at}: listing secrets`, false, () => agent.list(Secret, { namespace })],
        [`${at}: writing secrets`, false, () => agent.patch(Secret, { namespace, name: 'agent-access' }, { data: {} })],
        [`${at}: removing the namespace`, false, () => agent.delete(Namespace, { name: namespace })],
        [`${at}: giving rights`, false, () => agent.create(RoleBinding, bindingIn(namespace))],
      ] as const
    }
    expect(
      await wrong([
        ...work(node, true),
        ...work(other, false),
        ['every guest', false, () => agent.list(Instance)],
        ['every secret', false, () => agent.list(Secret)],
        ['every namespace', false, () => agent.list(Namespace)],
        ['hosts', false, () => agent.list(Node)],
        ['its host', false, () => agent.patch(Node, { name: node }, { spec: { isCordoned: false } })],
        ["an account's servers", false, () => agent.list(Server, { namespace: OWN })],
        ["an account's server", false, () => agent.get(Server, { namespace: OWN, name: 'confined' })],
        [
          "changing an account's server",
          false,
          () => agent.patch(Server, { namespace: OWN, name: 'confined' }, { spec: { title: AT } }),
        ],
        ["an account's user data", false, () => agent.get(Secret, { namespace: OWN, name: 'user-data' })],
        ["an account's storages", false, () => agent.list(Storage, { namespace: OWN })],
      ]),
      node,
    ).toEqual([])
    const key = { namespace: `node-${node}`, name: 'guest' }
    await agent.patch(
      Instance,
      key,
      {
        metadata: { finalizers: ['svccloud.dev/host'], labels: { 'svccloud.dev/account': 'another' } },
        spec: { interfaces: [STOLEN_INTERFACE] },
        status: { state: 'running', incarnation: 2 },
      },
      'status',
    )
    const guest = await admin.get(Instance, key)
    expect(guest?.status?.incarnation, 'the status is what the agent writes').toBe(2)
    expect(guest?.spec.interfaces, 'a write of the status leaves the spec').toEqual([])
    expect(guest?.metadata.finalizers, 'and the metadata').toBeUndefined()
    expect(guest?.metadata.labels).toBeUndefined()
  }
}

const bindingIn = (namespace: string) => ({
  metadata: { name: 'mine', namespace },
  spec: undefined,
  subjects: [],
  roleRef: { apiGroup: RBAC.group, kind: 'ClusterRole', name: 'svccloud:viewer' },
})
