/** The metadata of a guest: one document, and the forms in which guests read it. Pure.
 *  It reaches the guest as a read-only disk (NoCloud, label `cidata`) and through the service at 169.254.169.254
 *  (`metadata-service.ts`). The disk is attached regardless of the metadata setting: the setting controls the service,
 *  which a program in the guest could be tricked into requesting. */
import { METADATA_ADDRESS } from '../../../domain/network/metadata-service.ts'
import type { InstanceSpec } from '../../../resources/instance/index.ts'
import { writeIso } from '../images/iso9660.ts'

const SEED_LABEL = 'cidata'

export interface MetadataAddress {
  readonly address: string
  readonly prefix: number
  readonly gateway: string
}

/** Shape of `/metadata/v1.json`, without the user data. */
export interface MetadataDocument {
  readonly id: string
  readonly hostname: string
  readonly title: string
  readonly zone: string
  readonly region: string
  readonly plan: string
  readonly public_keys: readonly string[]
  readonly interfaces: readonly {
    readonly mac: string
    readonly kind: 'public' | 'private'
    readonly ipv4: MetadataAddress | null
    readonly ipv6: MetadataAddress | null
  }[]
  readonly dns: { readonly servers: readonly string[]; readonly search: readonly string[] }
  readonly labels: Readonly<Record<string, string>>
  readonly vendor_data: null
}

/** Addresses are null if the zone assigns none. */
export function metadataDocument(spec: InstanceSpec): MetadataDocument {
  const { id, title, zone, region, plan, publicKeys, labels } = spec.metadata
  return {
    id,
    hostname: spec.hostname,
    title,
    zone,
    region,
    plan,
    public_keys: publicKeys,
    interfaces: spec.interfaces.map(({ macAddress, kind, ipv4, ipv6 }) => ({
      mac: macAddress,
      kind,
      ipv4: ipv4 ?? null,
      ipv6: ipv6 ?? null,
    })),
    dns: { servers: [], search: [] },
    labels,
    vendor_data: null,
  }
}

/** NoCloud `meta-data`: YAML, one key a line, so that a shell can read it too. Strings are quoted as JSON, which YAML
 *  understands. */
export function metaDataText(document: MetadataDocument): string {
  const keys = document.public_keys.map((key) => key.trim()).filter((key) => key !== '')
  return [
    `instance-id: ${document.id}`,
    `local-hostname: ${document.hostname}`,
    ...(keys.length === 0 ? ['public-keys: []'] : ['public-keys:', ...keys.map((key) => `  - ${JSON.stringify(key)}`)]),
    '',
  ].join('\n')
}

/** NoCloud `network-config`, version 2. Every interface is identified by its MAC address, has its known addresses, and
 *  requests the rest from the network, including routes. One line for each field, so that a shell can read it too. */
export function networkConfigText(document: MetadataDocument): string {
  const interfaces = document.interfaces.flatMap(({ mac, ipv4, ipv6 }, index) => {
    const addresses = [ipv4, ipv6].flatMap((one) => (one === null ? [] : [`${one.address}/${one.prefix}`]))
    return [
      `  net${index}:`,
      `    match: {macaddress: "${mac}"}`,
      ...(addresses.length === 0 ? [] : [`    addresses: ${JSON.stringify(addresses)}`]),
      '    dhcp4: true',
      '    dhcp6: false',
      '    accept-ra: true',
    ]
  })
  return ['version: 2', ...(interfaces.length === 0 ? ['ethernets: {}'] : ['ethernets:', ...interfaces]), ''].join('\n')
}

/** Content for cloud-init when the customer has given no user data. */
export const NO_USER_DATA = '#cloud-config\n{}\n'

/** User data for the disk: the data, or a reference to the metadata service. Data that the service can switch off must
 *  not stay on a disk. */
export const seedUserData = (userData: Buffer | undefined, isServed: boolean): Buffer | undefined =>
  userData !== undefined && isServed ? Buffer.from(`#include\nhttp://${METADATA_ADDRESS}/user-data\n`) : userData

/** The bytes of the seed disk; the same input gives the same bytes. */
export function seedDisk(document: MetadataDocument, userData: Buffer | undefined): Buffer {
  return writeIso(SEED_LABEL, {
    'meta-data': Buffer.from(metaDataText(document)),
    'user-data': userData ?? Buffer.from(NO_USER_DATA),
    'network-config': Buffer.from(networkConfigText(document)),
    'metadata.json': Buffer.from(`${JSON.stringify(document)}\n`),
  })
}
