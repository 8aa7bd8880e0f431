/** The TLS files for a database behind `ssl:`, with the names that Kubernetes and cert-manager use in a Secret. */
import { join } from 'node:path'
import { readPemFile } from '../../../kit/sys/secret-file.ts'

/** PEM. */
export interface OvsdbTls {
  readonly key: string
  /** The client certificate, which the server verifies. */
  readonly certificate: string
  /** The only authority that is trusted for servers' certificates. */
  readonly authority: string
}

/** Throws when a file is empty or cannot be read. */
export async function readTlsFolder(folder: string): Promise<OvsdbTls> {
  const names = ['tls.key', 'tls.crt', 'ca.crt']
  const [key = '', certificate = '', authority = ''] = await Promise.all(
    names.map((name) => readPemFile(join(folder, name))),
  )
  return { key, certificate, authority }
}
