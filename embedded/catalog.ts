/** The catalog of an embedded cloud: the offers of catalog.yaml, and the zones and nodes of --nodes. */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { stringify } from 'yaml'
import { defined } from '../domain/defined.ts'
import type { BmcAccess } from './machines.ts'
import type { NodeCount } from './options.ts'

export const REGION = 'eu-1'
const API_VERSION = 'svccloud.dev/v1alpha1'
export interface PlannedNode {
  readonly name: string
  readonly zone: string
}

/** `eu-1a=2` gives eu-1a-1 and eu-1a-2; the names are the same at every start. */
export const planNodes = (zones: readonly NodeCount[]): readonly PlannedNode[] =>
  zones.flatMap(({ zone, count }) =>
    Array.from({ length: count }, (_, index) => ({ name: `${zone}-${index + 1}`, zone })),
  )

/** Nodes in the folder from earlier starts that `--nodes` does not name. They continue to run with their guests until
 *  they are removed: omitting a node does not stop it. */
export async function nodesLeftOut(folder: string, zones: readonly NodeCount[]): Promise<readonly PlannedNode[]> {
  const names = new Set(planNodes(zones).map(({ name }) => name))
  return (await readdir(folder)).flatMap((name) => {
    const zone = /^(.+)-\d+$/.exec(name)?.[1]
    return zone === undefined || names.has(name) ? [] : [{ name, zone }]
  })
}

/** Sorted by zone and number, so that a node keeps its place when another one is omitted. */
export function inOrder(zones: readonly NodeCount[], nodes: readonly PlannedNode[]): readonly PlannedNode[] {
  const places = [...new Set([...zones, ...nodes].map(({ zone }) => zone))]
  const number = ({ name, zone }: PlannedNode) => Number(name.slice(zone.length + 1))
  return nodes.toSorted((a, b) => places.indexOf(a.zone) - places.indexOf(b.zone) || number(a) - number(b))
}

/** Name of the Secret with the platform's credentials for the controllers of the nodes. */
const BMC_SECRET = 'bmc-simulator'

/** The uplink of a zone, and the pools of its addresses. */
export interface ZoneNetwork {
  readonly publicNetwork: object
  readonly pools: readonly { readonly name: string; readonly spec: object }[]
}

/** The complete catalog as YAML documents, for SVCCLOUD_CATALOG_FILE. A node has a management controller if it is
 *  known; a zone has an uplink and pools if there is a network. Zones of earlier starts that still have nodes are
 *  included. */
export async function catalogFor(
  zones: readonly NodeCount[],
  bmc?: BmcAccess,
  network?: { readonly zone: (name: string) => ZoneNetwork },
  zonesOfBefore: readonly string[] = [],
): Promise<string> {
  const offered = await readFile(join(import.meta.dirname, 'catalog.yaml'), 'utf8')
  const names = [...new Set([...zones.map(({ zone }) => zone), ...zonesOfBefore])]
  const zoneObjects = names.map((zone) => ({
    apiVersion: API_VERSION,
    kind: 'Zone',
    metadata: { name: zone },
    spec: {
      displayName: zone.toUpperCase(),
      region: REGION,
      ...defined({ publicNetwork: network?.zone(zone).publicNetwork }),
    },
  }))
  const poolObjects = names.flatMap((zone) =>
    (network?.zone(zone).pools ?? []).map(({ name, spec }) => ({
      apiVersion: API_VERSION,
      kind: 'PublicPool',
      metadata: { name },
      spec,
    })),
  )
  const nodeObjects = planNodes(zones).map(({ name, zone }, index) => ({
    apiVersion: API_VERSION,
    kind: 'Node',
    metadata: { name },
    spec: {
      zone,
      rack: `rack-${index + 1}`,
      ...(bmc === undefined
        ? {}
        : { bmc: { address: `${bmc.url}/redfish/v1/Systems/${name}`, protocol: 'redfish', secretName: BMC_SECRET } }),
    },
  }))
  const secrets =
    bmc === undefined
      ? []
      : [
          {
            apiVersion: 'v1',
            kind: 'Secret',
            metadata: { name: BMC_SECRET },
            stringData: { username: bmc.username, password: bmc.password, 'ca.crt': bmc.authority },
          },
        ]
  return [
    offered,
    ...[...zoneObjects, ...poolObjects, ...secrets, ...nodeObjects].map((object) => stringify(object)),
  ].join('---\n')
}
