/** The ClusterRoles that operators bind in the namespaces of accounts, as the folder of generated files has them. */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parse } from 'yaml'
import type { ObjectMeta, ResourceType } from '../kit/kube/object.ts'
import type { Store } from '../kit/kube/store.ts'

const ClusterRole: ResourceType<undefined, undefined> = {
  group: 'rbac.authorization.k8s.io',
  version: 'v1',
  kind: 'ClusterRole',
  plural: 'clusterroles',
  scope: 'Cluster',
}

/** Safe to repeat: roles that are there become what the files say. */
export async function installRoles(store: Store, folder: string): Promise<void> {
  for (const file of (await readdir(folder)).filter((name) => name.endsWith('.yaml')).sort()) {
    // written by the generator
    const { metadata, rules } = parse(await readFile(join(folder, file), 'utf8')) as {
      readonly metadata: ObjectMeta
      readonly rules: unknown
    }
    await store.apply(ClusterRole, { ...{ rules }, metadata, spec: undefined })
  }
}
