/** The pods of a control plane: etcd, API servers with a tunnel to nodes beside each, and controllers. Pure. */
import { hash } from 'node:crypto'
import { defined } from '../../domain/defined.ts'
import {
  apiserverFlags,
  controllerManagerFlags,
  etcdFlags,
  GO_ENVIRONMENT,
  schedulerFlags,
  tunnelFlags,
} from '../core/flags.ts'
import { labelsOf, metadataOf, selectorOf } from './base.ts'
import { Deployment, type Manifest, StatefulSet } from './kinds.ts'
import {
  API,
  ETCD,
  etcdPlace,
  etcdServers,
  FOLDERS,
  MANAGER,
  membershipOf,
  PART_LABEL,
  PORTS,
  READER,
  SCHEDULER,
  STORES_LABEL,
  TUNNEL_SOCKET,
} from './names.ts'
import type { PodsRecord } from './record.ts'
import type { HostSettings } from './settings.ts'
import { controllersOf, resourcesOf, SIZES, type Size } from './sizes.ts'

/** A user id without an account, in the container and on the host. */
const USER = 65_532
const DIGEST = 'svccloud.dev/files'
/** Time for which a terminating API server continues to serve, until no traffic is directed to it. */
const SHUTDOWN_SECONDS = 10

export interface Container {
  readonly name: string
  readonly image: string
  /** Absent when the image defines its command. */
  readonly command?: readonly string[]
  readonly args?: readonly string[]
  readonly size: Size
  readonly mounts: Readonly<Record<string, string>>
  readonly more?: object
}

/** Meets the `restricted` profile of Kubernetes. */
export const containerOf = ({ name, image, command, args, size, mounts, more }: Container) => ({
  name,
  image,
  imagePullPolicy: 'IfNotPresent',
  ...defined({ command, args }),
  env: Object.entries(GO_ENVIRONMENT).map(([variable, value]) => ({ name: variable, value })),
  resources: resourcesOf(size),
  securityContext: {
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ['ALL'] },
  },
  volumeMounts: Object.entries(mounts).map(([volume, mountPath]) => ({ name: volume, mountPath })),
  ...more,
})

/** Common settings of all pods. Pods of the same part run on different nodes, and in different zones if there are
 *  several. */
export const podSpec = (
  { nodeSelector, tolerations }: Pick<HostSettings, 'nodeSelector' | 'tolerations'>,
  apart: Readonly<Record<string, string>>,
  more: object,
) => ({
  automountServiceAccountToken: false,
  enableServiceLinks: false,
  nodeSelector,
  tolerations,
  securityContext: {
    runAsNonRoot: true,
    runAsUser: USER,
    runAsGroup: USER,
    fsGroup: USER,
    seccompProfile: { type: 'RuntimeDefault' },
  },
  topologySpreadConstraints: [
    {
      maxSkew: 1,
      topologyKey: 'kubernetes.io/hostname',
      whenUnsatisfiable: 'DoNotSchedule',
      nodeTaintsPolicy: 'Honor',
      labelSelector: { matchLabels: apart },
    },
    {
      maxSkew: 1,
      topologyKey: 'topology.kubernetes.io/zone',
      whenUnsatisfiable: 'ScheduleAnyway',
      labelSelector: { matchLabels: apart },
    },
  ],
  ...more,
})

const get = (path: string, port: number, scheme: 'HTTP' | 'HTTPS') => ({ httpGet: { path, port, scheme } })
/** A slow start is tolerated for five minutes; a program that does not answer for a minute is restarted. */
const probes = (ready: object, live: object) => ({
  startupProbe: { ...live, periodSeconds: 2, timeoutSeconds: 5, failureThreshold: 150 },
  readinessProbe: { ...ready, periodSeconds: 3, timeoutSeconds: 5, failureThreshold: 2 },
  livenessProbe: { ...live, periodSeconds: 10, timeoutSeconds: 10, failureThreshold: 6 },
})

/** The files of a Secret as a volume. */
export const filesVolume = (secretName: string) => ({
  name: 'files',
  secret: { secretName, defaultMode: 0o440 },
})
export const template = (
  record: PodsRecord,
  part: string,
  spec: object,
  annotations: Readonly<Record<string, string>> = {},
) => ({
  metadata: { labels: { ...labelsOf(record), [PART_LABEL]: part, ...(part === ETCD ? STORES : {}) }, annotations },
  spec,
})
export const STORES = { [STORES_LABEL]: ETCD }

export const claimSpec = ({ storage: { className, mebibytes } }: PodsRecord) => ({
  accessModes: ['ReadWriteOnce'],
  ...defined({ storageClassName: className }),
  resources: { requests: { storage: `${mebibytes}Mi` } },
})

/** All members start together, because none is ready before there is a majority. They are replaced one after the other.
 */
export function etcdManifest(record: PodsRecord, settings: HostSettings): Manifest {
  const name = '$(POD_NAME)'
  const container = containerOf({
    name: ETCD,
    image: settings.images.etcd,
    size: SIZES.etcd,
    command: [
      'etcd',
      ...etcdFlags(etcdPlace(record, name), membershipOf(record)),
      `--listen-metrics-urls=http://0.0.0.0:${PORTS.etcdHealth}`,
      '--peer-skip-client-san-verification',
    ],
    mounts: { files: FOLDERS.files, data: FOLDERS.data },
    more: {
      env: [
        ...Object.entries(GO_ENVIRONMENT).map(([variable, value]) => ({ name: variable, value })),
        { name: 'POD_NAME', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
      ],
      ...probes(get('/readyz', PORTS.etcdHealth, 'HTTP'), get('/livez', PORTS.etcdHealth, 'HTTP')),
    },
  })
  return {
    type: StatefulSet,
    object: {
      metadata: metadataOf(record, ETCD),
      spec: {
        replicas: record.desired.replicas,
        serviceName: ETCD,
        podManagementPolicy: 'Parallel',
        selector: selectorOf(ETCD),
        template: template(
          record,
          ETCD,
          podSpec(settings, STORES, { containers: [container], volumes: [filesVolume(ETCD)] }),
        ),
        volumeClaimTemplates: [
          // In the form that the API returns: the API would fill in missing fields, and every comparison would show a
          // change.
          {
            apiVersion: 'v1',
            kind: 'PersistentVolumeClaim',
            metadata: { name: 'data' },
            spec: { ...claimSpec(record), volumeMode: 'Filesystem' },
          },
        ],
      },
    },
  }
}

/** Digest of files that a program reads only once: a change restarts it. */
export const digestOf = (...texts: readonly string[]) => ({ [DIGEST]: hash('sha256', texts.join('\n')) })

/** A new server is added before an old one is removed, so that the number of serving ones stays the same. The tunnel
 *  outlives the server beside it. */
export function apiManifest(record: PodsRecord, settings: HostSettings, certificate: string): Manifest {
  const { desired } = record
  const files = { files: FOLDERS.files }
  const sidecar = { restartPolicy: 'Always' }
  const inTunnel = { ...files, tunnel: FOLDERS.tunnel }
  const at = (address: string, port: number) => ({ address, port })
  const tunnel = containerOf({
    name: 'tunnel',
    image: settings.images.tunnel,
    size: SIZES.tunnel,
    mounts: inTunnel,
    args: [
      ...tunnelFlags({
        folder: FOLDERS.files,
        socket: TUNNEL_SOCKET,
        agents: at('0.0.0.0', PORTS.tunnel),
        admin: at('127.0.0.1', PORTS.tunnelAdmin),
        health: at('127.0.0.1', PORTS.tunnelHealth),
      }),
      `--server-count=${desired.replicas}`,
    ],
    more: sidecar,
  })
  const issuer = containerOf({
    name: 'issuer',
    image: settings.images.platform,
    size: SIZES.issuer,
    mounts: files,
    more: sidecar,
    command: ['node', 'hosting/pods/pod/issuer.ts', FOLDERS.files, String(PORTS.issuer)],
  })
  const server = containerOf({
    name: API,
    image: imagesOf(record, settings).apiserver,
    size: SIZES.apiserver,
    mounts: inTunnel,
    command: [
      API,
      ...apiserverFlags(desired, {
        folder: FOLDERS.files,
        etcdServers: etcdServers(record),
        bindAddress: '0.0.0.0',
        port: PORTS.api,
        // Standard output, for the log collection of the host cluster.
        auditLog: '-',
      }),
      `--shutdown-delay-duration=${SHUTDOWN_SECONDS}s`,
      '--shutdown-send-retry-after=true',
    ],
    more: probes(get('/readyz', PORTS.api, 'HTTPS'), get('/livez', PORTS.api, 'HTTPS')),
  })
  const spec = podSpec(settings, selectorOf(API).matchLabels, {
    terminationGracePeriodSeconds: 6 * SHUTDOWN_SECONDS,
    containers: [server],
    initContainers: [tunnel, ...(desired.issuer === null ? [] : [issuer])],
    volumes: [filesVolume(API), { name: 'tunnel', emptyDir: {} }],
  })
  return deployment(record, API, {
    replicas: desired.replicas,
    minReadySeconds: 3,
    strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
    template: template(record, API, spec, digestOf(certificate)),
  })
}

/** Limit of its heap. */
const READER_MEBIBYTES = 384
const READERS = 'svccloud.dev/readers'

/** A new reader starts only after the previous one has ended, so that no question reaches an untrusted one. */
export function readerManifest(record: PodsRecord, settings: HostSettings, certificates: string): Manifest {
  const takesConnections = { tcpSocket: { port: PORTS.reader } }
  const container = containerOf({
    name: READER,
    image: settings.images.platform,
    size: SIZES.reader,
    mounts: { files: FOLDERS.files },
    command: [
      'node',
      `--max-old-space-size=${READER_MEBIBYTES}`,
      'hosting/pods/pod/reader.ts',
      FOLDERS.files,
      String(PORTS.reader),
    ],
    more: probes(takesConnections, takesConnections),
  })
  return deployment(record, READER, {
    replicas: 1,
    strategy: { type: 'Recreate' },
    template: template(
      record,
      READER,
      podSpec(settings, selectorOf(READER).matchLabels, { containers: [container], volumes: [filesVolume(READER)] }),
      { ...digestOf(certificates), [READERS]: String(record.readers) },
    ),
  })
}

export const deployment = (record: PodsRecord, part: string, spec: object): Manifest => ({
  type: Deployment,
  object: { metadata: metadataOf(record, part), spec: { selector: selectorOf(part), ...spec } },
})

/** The images of the desired release. */
function imagesOf({ desired }: PodsRecord, { images }: HostSettings) {
  const found = images.releases[desired.release]
  if (found === undefined) throw new Error(`there are no images of Kubernetes ${desired.release}`)
  return found
}

/** Credentials of the controllers for the cluster. */
export interface ControllerFiles {
  readonly manager: string
  readonly scheduler: string
}

/** Controllers, of which one is elected. Never newer than an API server. */
export function controllerManifests(
  record: PodsRecord,
  settings: HostSettings,
  files: ControllerFiles,
): readonly Manifest[] {
  const { controllerManager, scheduler } = imagesOf(record, settings)
  const part = (name: string, image: string, size: Size, port: number, flags: readonly string[], file: string) => {
    const healthy = get('/healthz', port, 'HTTPS')
    const container = containerOf({
      name,
      image,
      size,
      mounts: { files: FOLDERS.files },
      command: [name, ...flags, '--leader-elect=true', '--bind-address=0.0.0.0', `--secure-port=${port}`],
      more: probes(healthy, healthy),
    })
    return deployment(record, name, {
      replicas: controllersOf(record.desired),
      template: template(
        record,
        name,
        podSpec(settings, selectorOf(name).matchLabels, { containers: [container], volumes: [filesVolume(name)] }),
        digestOf(file),
      ),
    })
  }
  const [manager, schedules] = [controllerManagerFlags(record.desired, FOLDERS.files), schedulerFlags(FOLDERS.files)]
  return [
    part(MANAGER, controllerManager, SIZES.controllerManager, PORTS.managerHealth, manager, files.manager),
    part(SCHEDULER, scheduler, SIZES.scheduler, PORTS.schedulerHealth, schedules, files.scheduler),
  ]
}
