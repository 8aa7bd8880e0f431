/** A host of control planes that only counts: states go from one to the next with each look, nothing runs. */
import type { ControlPlanesOffer } from '../integrations/control-planes/configuration.ts'
import type {
  AddonGrant,
  AgentObject,
  ControlPlaneDesired,
  ControlPlaneNode,
  ControlPlanes,
  ControlPlaneSnapshot,
  ControlPlaneState,
  ServingRequest,
  SnapshotPlace,
} from '../integrations/control-planes/control.ts'
import { markOf } from '../integrations/control-planes/control.ts'
import type { ClusterLoad } from '../integrations/control-planes/load.ts'
import { conflict, Unavailable, unavailable } from '../domain/problem.ts'

interface Plane {
  desired: ControlPlaneDesired
  release: string | null
  restoreId: string | null
  hasQuorum: boolean
  readonly snapshots: Map<string, ControlPlaneSnapshot>
  /** What kubelets would be to it: tests say. */
  readonly nodes: Map<string, ControlPlaneNode>
  readonly requests: Map<string, ServingRequest>
  readonly tokens: Set<string>
  /** Who has a separate credential, with its role. */
  readonly people: Map<string, string>
  /** By the names of the add-ons that it could run. */
  readonly grants: Map<string, AddonGrant>
  place: SnapshotPlace | undefined
  /** Of the organisation platform. */
  agent: readonly AgentObject[]
  /** What autoscaling sees. */
  load: ClusterLoad
  /** Nodes whose pods may not go. */
  readonly busy: Set<string>
}

export interface SimulatedControlPlanes {
  readonly offer: ControlPlanesOffer
  /** Of that offer. */
  readonly control: ControlPlanes
  readonly planes: Map<string, Plane>
  /** While it is set nothing answers. */
  isAway: boolean
  /** What happens while the host makes one. */
  beforePersonToken: () => Promise<void>
  releases: string[]
  nodesObstacle: string
  guestsObstacle: string
  /** `process` has endpoints, where nobody answers, and tokens for them. */
  driver: 'simulated' | 'process' | 'pods'
  addons: ControlPlaneState['addons'][number][]
  /** What was asked of it that changes something, in order. */
  readonly calls: string[]
}

const FOR_NODES = { endpoint: 'https://[2001:2::1]:6443', tunnel: { host: '2001:2::1', port: 6_444 } }
const ADDON = 'csi-driver'
const AT = '2026-01-01T12:00:00.000Z'

export function openSimulatedControlPlanes(regions: readonly string[]): SimulatedControlPlanes {
  const planes = new Map<string, Plane>()
  const known = (id: string): Plane => {
    const plane = planes.get(id)
    if (plane === undefined) throw new Unavailable('the control plane')
    return plane
  }
  const stateOf = (id: string, plane: Plane): ControlPlaneState => {
    const { desired, release, restoreId, hasQuorum } = plane
    const [total, ready] = [desired.replicas, hasQuorum ? desired.replicas : 0]
    return {
      id,
      release,
      restoreId,
      phase: release === null ? 'starting' : release === desired.release ? 'running' : 'upgrading',
      endpoint: simulated.driver === 'process' ? 'https://192.0.2.1:6443' : null,
      forNodes: FOR_NODES,
      addons: [...simulated.addons],
      grants: [{ addon: ADDON, tokenId: plane.grants.get(ADDON)?.tokenId ?? null }],
      snapshotStore: { mark: plane.place === undefined ? '' : markOf(plane.place), detail: '' },
      certificateAuthority: 'the certificate of an authority',
      apiServer: hasQuorum ? 'healthy' : 'unhealthy',
      apiServersReady: ready,
      etcdMembersReady: ready,
      etcdMembersTotal: total,
      hasEtcdQuorum: hasQuorum,
      detail: 'simulated',
      observedAt: AT,
    }
  }
  const snapshotOf = (id: string, release: string): ControlPlaneSnapshot => ({
    id,
    release,
    phase: 'done',
    sizeBytes: 1_000,
    createdAt: AT,
    detail: '',
    isStored: false,
  })
  const calls: string[] = []
  const control: ControlPlanes = {
    offer: async () => ({
      driver: simulated.driver,
      releases: [...simulated.releases],
      memoryBytes: 1_000_000,
      reservedBytes: 0,
      bytesOfOne: 1,
      bytesOfThree: 3,
      nodeCount: 1,
      etcdBytes: 1_000_000_000,
      nodesObstacle: simulated.nodesObstacle,
      guests: { obstacle: simulated.guestsObstacle, bytesOfOne: 2, appDomain: 'apps.example.com' },
    }),
    async ensure(desired) {
      const before = planes.get(desired.id)
      if (before === undefined)
        planes.set(desired.id, {
          desired,
          release: null,
          restoreId: null,
          hasQuorum: true,
          snapshots: new Map(),

          place: undefined,
          nodes: new Map(),
          requests: new Map(),
          tokens: new Set(),
          busy: new Set(),
          people: new Map(),
          grants: new Map(),
          agent: [],
          load: { nodes: [], pods: [], budgets: {} },
        })
      else before.desired = desired
      return stateOf(desired.id, known(desired.id))
    },
    async get(id) {
      const plane = planes.get(id)
      const state = plane && stateOf(id, plane)
      if (plane !== undefined) plane.release = plane.desired.release
      return state
    },
    remove: async (id) => !planes.delete(id),
    async snapshot(id, snapshotId) {
      const { desired, snapshots } = known(id)
      const snapshot = snapshotOf(snapshotId, desired.release)
      if (!snapshots.has(snapshotId)) snapshots.set(snapshotId, snapshot)
      return snapshots.get(snapshotId) ?? snapshot
    },
    snapshots: async (id) => [...known(id).snapshots.values()],
    async keepSnapshotsIn(id, place) {
      known(id).place = place
    },
    removeSnapshot: async (id, snapshotId) => void known(id).snapshots.delete(snapshotId),
    async restore(id, restoreId, snapshotId) {
      const plane = known(id)
      if (!plane.snapshots.has(snapshotId)) throw conflict('state_not_allowed', 'There is no such snapshot.')
      Object.assign(plane, { restoreId, hasQuorum: true })
      return stateOf(id, plane)
    },
    grant: async (id, addon, grant) => void known(id).grants.set(addon, grant),
    async recover(desired, place, restoreId, snapshotId) {
      if (!planes.has(desired.id)) await control.ensure(desired)
      const plane = known(desired.id)
      plane.snapshots.set(snapshotId, { ...snapshotOf(snapshotId, desired.release), isStored: true })
      Object.assign(plane, { place, restoreId, release: desired.release })
      return stateOf(desired.id, plane)
    },
    nodes: async (id) => [...known(id).nodes.values()],
    servingRequests: async (id) => [...known(id).requests.values()],
    approveServing: async (id, request) => void known(id).requests.delete(request),
    async markNode(id, name, { digest }) {
      const node = known(id).nodes.get(name)
      if (node !== undefined) known(id).nodes.set(name, { ...node, marked: digest })
    },
    async userToken() {
      if (simulated.driver === 'process') return { token: 'of an administrator', expiresAt: AT }
      throw unavailable('not_configured', 'The cluster is simulated: nothing answers.')
    },
    async personToken(id, person) {
      await simulated.beforePersonToken()
      const answer = await control.userToken(id, person.role, 0)
      known(id).people.set(person.id, person.role)
      return { ...answer, token: `of ${person.id}` }
    },
    removePerson: async (id, person) => void known(id).people.delete(person.id),
    async joinToken(id, tokenId, _pool, seconds) {
      const token = `${tokenId}.0123456789abcdef`
      known(id).tokens.add(token)
      return { token, expiresAt: new Date(Date.parse(AT) + seconds * 1_000).toISOString() }
    },
    removeJoinToken: async (id, tokenId) => void known(id).tokens.delete(`${tokenId}.0123456789abcdef`),
    async setAgent(id, objects) {
      known(id).agent = objects
    },
    drain: async (id, node) => !known(id).busy.has(node),
    uncordon: async () => {},
    load: async (id) => known(id).load,
    removeNode: async (id, node) => void known(id).nodes.delete(node),
  }
  const asked = new Proxy(control, {
    get:
      (target, name: keyof ControlPlanes) =>
      async (...values: never[]) => {
        if (simulated.isAway) throw new Unavailable('the host of control planes')
        if (!['offer', 'get', 'snapshots', 'nodes', 'servingRequests', 'load'].includes(name)) calls.push(name)
        // Each method takes what its caller hands it.
        return (target[name] as (...given: never[]) => unknown)(...values)
      },
  })
  const simulated: SimulatedControlPlanes = {
    offer: { regions, control: asked },
    control: asked,
    planes,
    beforePersonToken: async () => {},
    isAway: false,
    releases: ['1.35.4', '1.36.3'],
    nodesObstacle: '',
    guestsObstacle: '',
    driver: 'simulated',
    addons: [],
    calls,
  }
  return simulated
}
