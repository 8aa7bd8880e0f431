/** The content of a certificate request (PKCS #10). */
import 'reflect-metadata'
import { SocketAddress } from 'node:net'
import * as x509 from '@peculiar/x509'

export interface RequestedNames {
  readonly commonName: string
  readonly organizations: readonly string[]
  readonly dnsNames: readonly string[]
  /** In canonical form: IPv6 in its short form. */
  readonly ipAddresses: readonly string[]
  /** It requests something else too: further parts of the name, names of other kinds, other extensions. */
  readonly hasMore: boolean
}

const SUBJECT_ALTERNATIVE_NAMES = '2.5.29.17'
const COMMON_NAME = 'CN'
const ORGANIZATION = 'O'

/** Throws for anything that is no such request. The signer must check its signature. */
export function readCertificateRequest(pem: string): RequestedNames {
  const { subjectName, extensions } = new x509.Pkcs10CertificateRequest(pem)
  const subject = subjectName.toJSON().flatMap((part) => Object.entries(part))
  const of = (name: string) => subject.filter(([key]) => key === name).flatMap(([, values]) => values)
  const names = extensions
    .filter((each) => each instanceof x509.SubjectAlternativeNameExtension)
    .flatMap((each) => each.names.toJSON())
  const valuesOf = (type: string) => names.filter((each) => each.type === type).map(({ value }) => value)
  const [commonName = '', ...others] = of(COMMON_NAME)
  return {
    commonName,
    organizations: of(ORGANIZATION),
    dnsNames: valuesOf('dns'),
    ipAddresses: valuesOf('ip').map(canonical),
    hasMore:
      others.length > 0 ||
      subject.some(([key]) => key !== COMMON_NAME && key !== ORGANIZATION) ||
      names.some(({ type }) => type !== 'dns' && type !== 'ip') ||
      extensions.some(({ type }) => type !== SUBJECT_ALTERNATIVE_NAMES),
  }
}

const canonical = (address: string): string =>
  new SocketAddress({ address, family: address.includes(':') ? 'ipv6' : 'ipv4' }).address
