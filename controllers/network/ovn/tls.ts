/** What a database behind `ssl:` is spoken to with: files as Kubernetes and cert-manager name them in a Secret. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'

/** PEM. */
export interface OvsdbTls {
  readonly key: string
  /** Which the server wants to see. */
  readonly certificate: string
  /** Who signs servers' certificates; nobody else's word counts. */
  readonly authority: string
}

/** Throws where a file cannot be read. */
export async function readTlsFolder(folder: string): Promise<OvsdbTls> {
  const names = ['tls.key', 'tls.crt', 'ca.crt']
  const [key = '', certificate = '', authority = ''] = await Promise.all(
    names.map((name) => readFile(join(folder, name), 'utf8')),
  )
  return { key, certificate, authority }
}
