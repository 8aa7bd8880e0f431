/** The plan and the image that tests and benchmarks start with, and a zone of them as manifests. */
import { API_GROUP, API_VERSION } from '../resources/kit/define.ts'
import type { PlanSpec, TemplateSpec } from '../resources/catalog/index.ts'

export const TINY_PLAN: PlanSpec = {
  family: 'starter',
  cores: 1,
  memoryMebibytes: 192,
  storageGibibytes: 1,
  priceMonthlyCents: 100,
}

export const TINY_LINUX: TemplateSpec = {
  title: 'Tiny',
  osFamily: 'linux',
  osVersion: '1',
  architecture: 'x86_64',
  defaultUser: 'root',
  minStorageGibibytes: 1,
  minMemoryMebibytes: 128,
  zones: [],
  image: { built: 'tiny-linux' },
}

/** A region, a zone of it, the plan, the image and one node. */
export const manifestsOf = (region: string, zone: string): readonly object[] =>
  [
    { kind: 'Region', metadata: { name: region }, spec: { displayName: region, country: 'DE' } },
    { kind: 'Zone', metadata: { name: zone }, spec: { displayName: zone, region } },
    { kind: 'Plan', metadata: { name: 'tiny' }, spec: TINY_PLAN },
    { kind: 'Template', metadata: { name: 'tiny-linux' }, spec: TINY_LINUX },
    { kind: 'Node', metadata: { name: 'n1' }, spec: { zone } },
  ].map((object) => ({ apiVersion: `${API_GROUP}/${API_VERSION}`, ...object }))
