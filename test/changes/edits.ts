/** One edit for each change of each noun: the spec before and after it. */
import { Backup } from '../../resources/backup/index.ts'
import { CustomImage } from '../../resources/custom-image/index.ts'
import { Edge } from '../../resources/edge/index.ts'
import { FloatingIp } from '../../resources/floating-ip/index.ts'
import { KubernetesCluster } from '../../resources/kubernetes-cluster/index.ts'
import { LoadBalancer } from '../../resources/load-balancer/index.ts'
import { Network } from '../../resources/network/index.ts'
import { Router } from '../../resources/router/index.ts'
import { Server } from '../../resources/server/index.ts'
import { ServerGroup } from '../../resources/server-group/index.ts'
import { Snapshot } from '../../resources/snapshot/index.ts'
import { Webhook } from '../../resources/webhook/index.ts'
import { Storage } from '../../resources/storage/index.ts'
import { PUBLIC_KEY } from '../apiserver/cloud.ts'

export type Edit = readonly [before: object, after: object]

/** Edits that set fields of the spec; undefined takes one out. */
const editing =
  (spec: object) =>
  (after: object, before: object = {}): Edit => [
    { ...spec, ...before },
    { ...spec, ...before, ...after },
  ]

const zone = 'z1'
const backup = editing(Backup.spec.parse({ storageId: 'disk' }))
const image = editing(CustomImage.spec.parse({ zone, title: 'Mine', source: { storageId: 'disk' } }))
const edge = editing(Edge.spec.parse({ zone, networkId: 'back', name: 'edge', roles: ['nat_gateway'], plan: 'small' }))
const floatingIp = editing(FloatingIp.spec.parse({ zone }))
const cluster = editing(
  KubernetesCluster.spec.parse({
    zone,
    networkId: 'back',
    name: 'cluster',
    version: '1.35',
    registersInPlatform: true,
  }),
)
const balancer = editing(LoadBalancer.spec.parse({ zone, networkId: 'back', name: 'balancer', plan: 'small' }))
const network = editing(Network.spec.parse({ zone, name: 'back' }))
const router = editing(Router.spec.parse({ zone, name: 'out', natEnabled: false, networkIds: ['back'] }))
const server = editing(
  Server.spec.parse({ zone, hostname: 'web', plan: 'small', template: 'linux', networks: [{ networkId: 'back' }] }),
)
const group = editing(ServerGroup.spec.parse({ name: 'front', spread: 'host', zone, strict: true }))
const snapshot = editing(Snapshot.spec.parse({ storageId: 'disk' }))
const webhook = editing(Webhook.spec.parse({ name: 'hook', url: 'https://hooks.example.com/', events: ['server.*'] }))
const storage = editing(Storage.spec.parse({ zone, sizeGibibytes: 10, tier: 'standard' }))

/** By noun and name of the change. */
export const EDITS: Readonly<Record<string, Readonly<Record<string, Edit>>>> = {
  backup: {
    place: backup({ zone }),
    describe: backup({ title: 'Golden' }),
  },
  custom_image: {
    edit: image({ title: 'Golden' }),
  },
  edge: {
    rename: edge({ name: 'other' }),
    configure: edge({ roles: ['bastion'], sshKeys: [PUBLIC_KEY] }),
  },
  floating_ip: {
    assign: floatingIp({ serverId: 'web' }),
    unassign: floatingIp({ serverId: undefined }, { serverId: 'web' }),
  },
  kubernetes_cluster: {
    upgrade: cluster({ version: '1.36' }),
    configure: cluster({ isProtected: true }),
    register: cluster({ registersInPlatform: false }),
  },
  load_balancer: {
    rename: balancer({ name: 'other' }),
    arrange: balancer({ isProtected: true }),
    configure: balancer({ backends: [{ name: 'web', members: [] }] }),
  },
  network: {
    rename: network({ name: 'other' }),
    label: network({ labels: { tier: 'a' } }),
    configure: network({ dhcpEnabled: false }),
  },
  router: {
    rename: router({ name: 'other' }),
    label: router({ labels: { tier: 'a' } }),
    attach_network: router({ networkIds: ['back', 'front'] }),
    detach_network: router({ networkIds: [] }),
    enable_nat: router({ natEnabled: true }),
    configure: router({ natEnabled: false }, { natEnabled: true }),
  },
  server: {
    remake: server({ hostname: 'other' }),
    change_plan: server({ plan: 'large', desiredPower: 'stopped' }),
    start: server({ desiredPower: 'running' }, { desiredPower: 'stopped' }),
    stop: server({ desiredPower: 'stopped' }),
    metadata: server({ metadataEnabled: false }),
    firewall: server({
      firewall: { enabled: true, defaultInbound: 'drop', defaultOutbound: 'accept', rules: [] },
    }),
    readdress: server({ networks: [{ networkId: 'back', ipv4Address: '10.1.0.9' }] }),
    attach_network: server({ networks: [{ networkId: 'back' }, { networkId: 'front' }] }),
    detach_network: server({ networks: [] }),
    describe: server({ title: 'Web' }),
    keys: server({ sshKeys: [PUBLIC_KEY] }),
    ha_policy: server({ haPolicy: 'none' }),
    migration_policy: server({ migrationPolicy: 'strict' }),
  },
  server_group: { rename: group({ name: 'other' }) },
  snapshot: { describe: snapshot({ title: 'Data' }) },
  webhook: { configure: webhook({ enabled: false }) },
  storage: {
    boot: storage({ isBoot: true }),
    move: storage({ tier: 'local-nvme' }),
    follow: storage({ zone: 'z2' }),
    describe: storage({ title: 'Data' }),
    schedule: storage({ backupSchedule: '@daily' }),
    copy: storage({ backupCopyZone: 'z2' }),
    attach: storage({ serverId: 'web' }),
    detach: storage({ serverId: undefined }, { serverId: 'web' }),
    growBoot: storage({ sizeGibibytes: 20 }, { isBoot: true }),
    resize: storage({ sizeGibibytes: 20 }),
  },
}
