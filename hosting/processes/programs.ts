/** Where the programs of control planes are. They are no npm packages: one command builds them, and what it built is
 *  found by every start. */
import { access, constants } from 'node:fs/promises'
import { join } from 'node:path'
import { availableParallelism } from 'node:os'
import { missingPrograms, missingText } from '../../integrations/control-planes/programs.ts'
import { ETCD_VERSION, KUBERNETES_RELEASES, TUNNEL_VERSION } from '../../domain/kubernetes-cluster/versions.ts'
import { isRoot } from '../../kit/sys/process.ts'
import { toolsFolder } from '../../kit/sys/tools-folder.ts'
import { ownProgramsObstacle } from './own-programs.ts'

/** What this machine has none of for want of programs that are built once, in the order of need, each with what is
 *  missing, who has to do what, and how long that takes. Empty where it has all. */
export const missingKubernetes = async (folder = toolsFolder()): Promise<readonly (readonly [string, string])[]> =>
  (await missingPrograms(folder)).map((each) => [each.purpose, missingText(each, availableParallelism())])

/** Why this machine hosts no control planes, for people; undefined where it can. */
export async function kubernetesObstacle(folder = toolsFolder()): Promise<string | undefined> {
  if ((await findKubernetes(folder)) !== undefined) return isRoot() ? ownProgramsObstacle() : undefined
  return (await missingKubernetes(folder))[0]?.[1] ?? 'its programs cannot be run'
}

export interface KubernetesPrograms {
  readonly release: string
  readonly apiserver: string
  readonly controllerManager: string
  readonly scheduler: string
}

export interface ControlPlanePrograms {
  readonly etcd: string
  readonly etcdutl: string
  /** The end of the tunnel to nodes that API servers use; without it no node joins. */
  readonly tunnel: string | undefined
  /** At least one, newest last. */
  readonly releases: readonly KubernetesPrograms[]
}

/** Undefined unless etcd and all programs of one release are there. */
export async function findKubernetes(folder = toolsFolder()): Promise<ControlPlanePrograms | undefined> {
  const [etcd, etcdutl] = [join(folder, ETCD_VERSION, 'etcd'), join(folder, ETCD_VERSION, 'etcdutl')]
  const server = join(folder, TUNNEL_VERSION, 'konnectivity-server')
  const tunnel = (await areThere([server])) ? server : undefined
  const releases: KubernetesPrograms[] = []
  for (const release of KUBERNETES_RELEASES) {
    const of = (name: string) => join(folder, `v${release}`, name)
    const programs = {
      apiserver: of('kube-apiserver'),
      controllerManager: of('kube-controller-manager'),
      scheduler: of('kube-scheduler'),
    }
    if (await areThere(Object.values(programs))) releases.push({ release, ...programs })
  }
  return releases.length > 0 && (await areThere([etcd, etcdutl])) ? { etcd, etcdutl, tunnel, releases } : undefined
}

export const areThere = (files: readonly string[]): Promise<boolean> =>
  Promise.all(files.map((file) => access(file, constants.X_OK))).then(
    () => true,
    () => false,
  )
