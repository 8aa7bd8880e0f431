/** A cluster whose pods really run, with the images of the platform and PostgreSQL in a pod: what a release of the
 *  chart is installed in. */
import { chmod, mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { VERSION } from '../../domain/version.ts'
import { buildTool } from '../../tools/cluster/build.ts'
import { writeImages } from '../../tools/images/write.ts'
import { type Helm, openHelm } from '../charts/helm.ts'
import { kubectlOf } from './kubectl.ts'
import { type PodCluster, startPodCluster } from './node.ts'
import { writePostgresImage } from './postgres.ts'

export const START_MILLISECONDS = 900_000 // the first time, the tools are built
export const SYSTEM_NAMESPACE = 'svccloud-system'
const LAPTOP = join(import.meta.dirname, '../../charts/laptop/postgres.yaml')
/** Where the manifest of charts/laptop/ finds room. */
const POSTGRES_VOLUME = {
  apiVersion: 'v1',
  kind: 'PersistentVolume',
  metadata: { name: 'postgres' },
  spec: {
    capacity: { storage: '2Gi' },
    accessModes: ['ReadWriteOnce'],
    hostPath: { path: '/var/lib/svccloud-postgres', type: 'DirectoryOrCreate' },
  },
}

export interface PlatformCluster {
  readonly cluster: PodCluster
  readonly helm: Helm
  end(): Promise<void>
}

export async function openPlatformCluster(folder: string): Promise<PlatformCluster> {
  for (const tool of ['helm', 'kubectl'] as const) await buildTool(tool)
  const cluster = await startPodCluster(folder)
  try {
    const helm = await openHelm(cluster.kubeconfigFile)
    await importAll(cluster, await writeImages(folder, VERSION))
    await installPostgres(cluster, folder)
    return {
      cluster,
      helm,
      async end() {
        await helm.close()
        await cluster.end()
      },
    }
  } catch (error) {
    await cluster.end()
    throw error
  }
}

/** Loads the images of these archives, which are deleted then. */
export async function importAll(cluster: PodCluster, archives: readonly string[]): Promise<void> {
  for (const file of archives) {
    await cluster.importImage(file)
    await rm(file)
  }
}

async function installPostgres(cluster: PodCluster, folder: string): Promise<void> {
  const kubectl = kubectlOf(cluster)
  await importAll(cluster, [await writePostgresImage(folder, 'docker.io/library/postgres:18')])
  await kubectl('create', 'namespace', SYSTEM_NAMESPACE)
  await kubectl('label', 'namespace', SYSTEM_NAMESPACE, 'pod-security.kubernetes.io/enforce=privileged')
  const file = join(folder, 'postgres-volume.json')
  await writeFile(file, JSON.stringify(POSTGRES_VOLUME))
  await kubectl('apply', '-f', file, '-f', LAPTOP)
  await kubectl('-n', SYSTEM_NAMESPACE, 'rollout', 'status', 'statefulset/svccloud-postgres', '--timeout=280s')
}

/** Folders of the node that anybody may write to, of the class `planes`: nothing here makes volumes. `others` are
 *  applied with them. */
export async function makeVolumes(
  cluster: Pick<PodCluster, 'machine' | 'kubeconfigFile'>,
  folder: string,
  count: number,
  others: readonly object[] = [],
): Promise<void> {
  const items = [...others]
  for (let number = 0; number < count; number++) {
    const at = join(cluster.machine.folder, 'var/planes', String(number))
    await mkdir(at, { recursive: true })
    await chmod(at, 0o777)
    items.push({
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: { name: `planes-${number}` },
      spec: {
        capacity: { storage: '2Gi' },
        accessModes: ['ReadWriteOnce'],
        storageClassName: 'planes',
        hostPath: { path: `/var/lib/planes/${number}`, type: 'Directory' },
      },
    })
  }
  const file = join(folder, 'volumes.json')
  await writeFile(file, JSON.stringify({ apiVersion: 'v1', kind: 'List', items }))
  await kubectlOf(cluster)('apply', '-f', file)
}
