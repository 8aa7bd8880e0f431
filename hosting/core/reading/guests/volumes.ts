/** Volumes of a playground: folders on the disk of its guest, one for each claim, until the playground ends. Its quota
 *  and that disk limit their total size. */
import { z } from 'zod'
import type { ControlPlaneGuest } from '../../../../integrations/control-planes/control.ts'
import { apply, type KubeApi, send } from '../../kube-api.ts'

const CLASS = 'local'
const PROVISIONER = 'svccloud.dev/playground'
const FOLDER = '/var/lib/playground-volumes'
const CLAIMS_MAXIMUM = 100

const Claims = z.object({
  items: z.array(
    z.object({
      metadata: z.object({ name: z.string(), namespace: z.string(), uid: z.string() }),
      spec: z.object({
        storageClassName: z.string().optional(),
        volumeName: z.string().default(''),
        accessModes: z.array(z.string()).default([]),
        resources: z.object({ requests: z.object({ storage: z.string() }) }),
      }),
      status: z.object({ phase: z.string().default('') }).default({ phase: '' }),
    }),
  ),
})
const Volumes = z.object({
  items: z.array(
    z.object({
      metadata: z.object({ name: z.string(), annotations: z.record(z.string(), z.string()).default({}) }),
      status: z.object({ phase: z.string().default('') }).default({ phase: '' }),
    }),
  ),
})

const STORAGE_CLASS = {
  apiVersion: 'storage.k8s.io/v1',
  kind: 'StorageClass',
  metadata: { name: CLASS, annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' } },
  provisioner: PROVISIONER,
  reclaimPolicy: 'Delete',
  volumeBindingMode: 'Immediate',
}

/** May be repeated. */
export async function applyVolumes(api: KubeApi, { name: node }: ControlPlaneGuest): Promise<void> {
  await apply(api, '/apis/storage.k8s.io/v1/storageclasses', STORAGE_CLASS)
  const claims = await send(api, 'GET', `/api/v1/persistentvolumeclaims?limit=${CLAIMS_MAXIMUM}`)
  for (const claim of Claims.parse(JSON.parse(claims.text)).items)
    if (claim.spec.storageClassName === CLASS && claim.spec.volumeName === '' && claim.status.phase === 'Pending')
      await apply(api, '/api/v1/persistentvolumes', volumeFor(claim, node))
  const volumes = await send(api, 'GET', `/api/v1/persistentvolumes?limit=${CLAIMS_MAXIMUM}`)
  for (const { metadata, status } of Volumes.parse(JSON.parse(volumes.text)).items)
    if (metadata.annotations['pv.kubernetes.io/provisioned-by'] === PROVISIONER && status.phase === 'Released')
      await send(api, 'DELETE', `/api/v1/persistentvolumes/${metadata.name}`, { accepted: [404] })
}

const volumeFor = ({ metadata, spec }: z.infer<typeof Claims>['items'][number], node: string) => ({
  apiVersion: 'v1',
  kind: 'PersistentVolume',
  metadata: { name: `pvc-${metadata.uid}`, annotations: { 'pv.kubernetes.io/provisioned-by': PROVISIONER } },
  spec: {
    storageClassName: CLASS,
    capacity: { storage: spec.resources.requests.storage },
    accessModes: spec.accessModes,
    persistentVolumeReclaimPolicy: 'Delete',
    claimRef: { apiVersion: 'v1', kind: 'PersistentVolumeClaim', ...metadata },
    hostPath: { path: `${FOLDER}/${metadata.uid}`, type: 'DirectoryOrCreate' },
    nodeAffinity: {
      required: {
        nodeSelectorTerms: [{ matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In', values: [node] }] }],
      },
    },
  },
})
