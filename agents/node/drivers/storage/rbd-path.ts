/** Names of disks in a Ceph cluster, in the form that QEMU's programs accept, so that a path shows the kind of disk. */

/** An image of a pool, and the user of the cluster that opens it. */
export interface RbdImage {
  readonly pool: string
  readonly image: string
  readonly user: string
}

/** Names that need no escaping anywhere. */
export const CEPH_NAME = /^[a-zA-Z0-9][-a-zA-Z0-9._]*$/
const PATH = /^rbd:([-a-zA-Z0-9._]+)\/([-a-zA-Z0-9._]+):id=([-a-zA-Z0-9._]+)$/

export const rbdPath = ({ pool, image, user }: RbdImage): string => `rbd:${pool}/${image}:id=${user}`

/** Undefined when the path is that of a file. */
export function readRbdPath(path: string): RbdImage | undefined {
  const [, pool, image, user] = PATH.exec(path) ?? []
  return pool === undefined || image === undefined || user === undefined ? undefined : { pool, image, user }
}

/** The same for a program of the host, with the location of the cluster. */
export function rbdProgramPath(
  { pool, image, user }: RbdImage,
  { configuration, snapshot }: { readonly configuration: string; readonly snapshot?: string },
): string {
  const point = snapshot === undefined ? '' : `@${snapshot}`
  return `rbd:${pool}/${image}${point}:id=${user}:conf=${configuration.replaceAll(/[\\:]/g, String.raw`\$&`)}`
}

/** Format of a disk that this host created: images of Ceph hold raw disks, files are qcow2. */
export const formatOf = (path: string): 'raw' | 'qcow2' => (path.startsWith('rbd:') ? 'raw' : 'qcow2')
