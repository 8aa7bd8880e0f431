/** Finds the programs of control planes. They are not npm packages: one command builds them, and every start finds the
 *  results. */
import { constants } from 'node:fs/promises'
import { join } from 'node:path'
import { availableParallelism } from 'node:os'
import { missingPrograms, missingText } from '../../integrations/control-planes/programs.ts'
import { ETCD_VERSION, KUBERNETES_RELEASES, TUNNEL_VERSION } from '../../domain/kubernetes-cluster/versions.ts'
import { isRoot } from '../../kit/sys/process.ts'
import { toolsFolder } from '../../kit/sys/tools-folder.ts'
import { ownProgramsObstacle } from './own-programs.ts'
import { isThere } from '../../kit/sys/is-there.ts'

/** Features that this machine lacks because programs were not built, in order of importance. Each with what is missing,
 *  who must do what, and how long it takes. Empty when nothing is missing. */
export const missingKubernetes = async (folder = toolsFolder()): Promise<readonly (readonly [string, string])[]> =>
  (await missingPrograms(folder)).map((each) => [each.purpose, missingText(each, availableParallelism())])

/** Why this machine cannot host control planes, for people; undefined when it can. */
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
  /** The program of the tunnel to nodes for API servers; without it nodes cannot join. */
  readonly tunnel: string | undefined
  /** At least one, newest last. */
  readonly releases: readonly KubernetesPrograms[]
}

/** Undefined unless etcd and all programs of one release exist. */
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

export const areThere = async (files: readonly string[]): Promise<boolean> =>
  (await Promise.all(files.map((file) => isThere(file, constants.X_OK)))).every(Boolean)
