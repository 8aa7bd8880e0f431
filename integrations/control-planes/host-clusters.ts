/** Settings of the hosts of control planes that the platform creates itself: where their own control planes run, and
 *  what runs in their clusters, which is the rendered part `control-planes` of the chart. */
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { parse, parseAllDocuments } from 'yaml'
import { z } from 'zod'
import type { ResourceType } from '../../kit/kube/object.ts'
import type { ControlPlanesSettings } from './settings.ts'

const HostClusters = z.strictObject({
  /** Region whose configured host of control planes runs those of host clusters. */
  region: z.string().min(1).max(63),
  /** Whether their nodes have public IPv4 addresses, for registries that support only IPv4. */
  publicIpv4: z.boolean().default(true),
  /** Namespace of the host process. */
  namespace: z.string().min(1).max(63).default('svccloud'),
  /** YAML documents, without the Secret of the host process. */
  manifests: z.string().min(1),
})

const Document = z.looseObject({
  apiVersion: z.string(),
  kind: z.string(),
  metadata: z.looseObject({ name: z.string().min(1), namespace: z.string().optional() }),
})

export interface HostDocument {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { readonly name: string; readonly namespace?: string }
  readonly [field: string]: unknown
}

export interface HostManifest {
  readonly type: ResourceType
  readonly document: HostDocument
}

export interface HostClustersSettings {
  readonly region: string
  readonly publicIpv4: boolean
  /** In the order of their application. */
  readonly manifests: readonly HostManifest[]
  /** Digest of the manifests. */
  readonly digest: string
  /** The Service of the host process; its Secret has the same name. */
  readonly service: { readonly namespace: string; readonly name: string }
}

const PLURALS: Readonly<Record<string, string>> = {
  ConfigMap: 'configmaps',
  ServiceAccount: 'serviceaccounts',
  Service: 'services',
  StatefulSet: 'statefulsets',
  NetworkPolicy: 'networkpolicies',
  ClusterRole: 'clusterroles',
  ClusterRoleBinding: 'clusterrolebindings',
  ValidatingAdmissionPolicy: 'validatingadmissionpolicies',
  ValidatingAdmissionPolicyBinding: 'validatingadmissionpolicybindings',
}
const OF_CLUSTERS = [
  'ClusterRole',
  'ClusterRoleBinding',
  'ValidatingAdmissionPolicy',
  'ValidatingAdmissionPolicyBinding',
]

/** Undefined when the platform creates no hosts. Throws for a file that cannot be read or is invalid. */
export async function readHostClusters({
  hostClustersFile: file,
}: ControlPlanesSettings): Promise<HostClustersSettings | undefined> {
  if (file === undefined) return undefined
  const read = HostClusters.safeParse(parse(await readFile(file, 'utf8')))
  if (!read.success) throw new Error(`${file}: ${z.prettifyError(read.error)}`)
  const { manifests: text, namespace, region, publicIpv4 } = read.data
  const manifests = manifestsOf(text, namespace)
  const [service, another] = manifests.filter(({ type }) => type.kind === 'Service')
  if (service === undefined || another !== undefined) throw new Error(`${file}: manifests must have one Service`)
  const digest = createHash('sha256').update(text).digest('hex')
  return { region, publicIpv4, manifests, digest, service: { namespace, name: service.document.metadata.name } }
}

/** Objects without a namespace get the given one. Throws for a kind that a host process does not use. */
const manifestsOf = (text: string, namespace: string): readonly HostManifest[] =>
  parseAllDocuments(text)
    .map((document): unknown => document.toJS())
    .filter((document) => document !== null)
    .map((each) => {
      const document = Document.parse(each)
      const { apiVersion, kind, metadata: ownMetadata } = document
      const plural = PLURALS[kind]
      if (plural === undefined) throw new Error(`manifests of a host cluster have a ${kind}: nothing is known of that`)
      const [version = '', group = ''] = apiVersion.split('/').toReversed()
      const { namespace: own = namespace, ...rest } = ownMetadata
      const isOfCluster = OF_CLUSTERS.includes(kind)
      const metadata = isOfCluster ? rest : { ...rest, namespace: own }
      const scope = isOfCluster ? 'Cluster' : 'Namespaced'
      return { type: { group, version, kind, plural, scope }, document: { ...document, metadata } }
    })
