/** The address at which guests reach the metadata service. In a network of OVN that is a port of their zone's switch,
 *  with a local instance on every host: traffic to it never leaves the host. */

export const METADATA_ADDRESS = '169.254.169.254'
/** The same on every switch: locally administered, and derived from the bytes of the address. */
export const METADATA_MAC = '0a:58:a9:fe:a9:fe'
/** The port's name in OVN, and on every host that has it. */
export const metadataPort = (zone: string): string => `metadata-${zone}`
