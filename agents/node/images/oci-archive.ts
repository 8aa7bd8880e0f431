/** Builds images of containers that no registry has, as archives (opencontainers.org, image layout). Pure. */
import { createHash } from 'node:crypto'
import { tarOf } from './tar.ts'

const OCI = 'application/vnd.oci.image'

export interface OciImage {
  readonly name: string
  /** Archives, each on top of the previous ones. */
  readonly layers: readonly Buffer[]
  /** Configuration of its processes. */
  readonly config: object
}

/** The same image gives the same bytes. */
export function ociArchive({ name, layers, config: begins }: OciImage): Buffer {
  const blobs = new Map<string, Buffer>()
  const add = (content: Buffer, mediaType: string) => {
    const digest = createHash('sha256').update(content).digest('hex')
    blobs.set(`blobs/sha256/${digest}`, content)
    return { mediaType: `${OCI}.${mediaType}`, digest: `sha256:${digest}`, size: content.length }
  }
  const json = (value: unknown) => Buffer.from(JSON.stringify(value))
  const added = layers.map((layer) => add(layer, 'layer.v1.tar'))
  const config = add(
    json({
      architecture: 'amd64',
      os: 'linux',
      config: begins,
      rootfs: { type: 'layers', diff_ids: added.map(({ digest }) => digest) },
    }),
    'config.v1+json',
  )
  const manifest = add(
    json({ schemaVersion: 2, mediaType: `${OCI}.manifest.v1+json`, config, layers: added }),
    'manifest.v1+json',
  )
  const annotations = { 'io.containerd.image.name': name, 'org.opencontainers.image.ref.name': name }
  const index = { schemaVersion: 2, manifests: [{ ...manifest, annotations }] }
  return tarOf([
    { name: 'oci-layout', content: json({ imageLayoutVersion: '1.0.0' }) },
    { name: 'index.json', content: json(index) },
    ...[...blobs].map(([path, content]) => ({ name: path, content })),
  ])
}
