/** The documents of clients, and what the strict reader of them refuses. */
import { describe, expect, test } from 'vitest'
import { readDocument } from '../../../kit/s3/document.ts'
import { S3Refusal } from '../../../kit/s3/refusal.ts'
import { readXml } from '../../../kit/s3/xml.ts'

const codeOf = (work: () => unknown): string => {
  try {
    work()
  } catch (error) {
    if (error instanceof S3Refusal) return error.code
    throw error
  }
  return 'read'
}
const remove = (xml: string) => readDocument('Delete', Buffer.from(xml))
const keyed = (key: string): string => `<Delete><Object><Key>${key}</Key></Object></Delete>`

describe('a list of keys', () => {
  test.each([
    [
      'as Amazon’s clients write it',
      '<?xml version="1.0" encoding="UTF-8"?>\n<Delete xmlns="http://s3.amazonaws.com/doc/2006-03-01/">' +
        '<Object><Key>a b</Key></Object><Quiet>true</Quiet></Delete>',
      ['a b'],
    ],
    [
      'with space around',
      ' <Delete>\n <Object> <Key>a</Key> <VersionId>null</VersionId></Object>\r\n</Delete>\n',
      ['a'],
    ],
    ['with references', keyed('a&amp;&#x2F;&#65;&lt;&apos;'), ["a&/A<'"]],
    ['with space of its own', keyed(' a\r\nb&#13; '), [' a\nb\r ']],
  ])('%s is read', (_what, xml, keys) => expect(remove(xml).keys).toEqual(keys))

  test.each([
    ['a key that climbs', keyed('../two-b/x'), 'InvalidRequest'],
    ['one by references', keyed('&#46;&#x2e;/x'), 'InvalidRequest'],
    ['one by a reference to a slash', keyed('..&#47;x'), 'InvalidRequest'],
    ['no key', '<Delete/>', 'MalformedXML'],
    ['an empty key', keyed(''), 'InvalidArgument'],
    ['two keys in one object', '<Delete><Object><Key>a</Key><Key>../b</Key></Object></Delete>', 'MalformedXML'],
    ['CDATA', keyed('<![CDATA[../x]]>'), 'MalformedXML'],
    ['a comment', keyed('a<!-- -->b'), 'MalformedXML'],
    ['an instruction', keyed('a<?x y?>b'), 'MalformedXML'],
    [
      'a document type',
      '<!DOCTYPE Delete [<!ENTITY a "..">]><Delete><Object><Key>&a;/x</Key></Object></Delete>',
      'MalformedXML',
    ],
    ['an entity of its own', keyed('&a;'), 'MalformedXML'],
    ['an entity that does not end', keyed('&amp'), 'MalformedXML'],
    ['a byte 0', keyed('a&#0;b'), 'MalformedXML'],
    ['a control character', keyed('a\u0003b'), 'MalformedXML'],
    ['a lone surrogate', keyed('&#xd800;'), 'MalformedXML'],
    ['an element within the key', keyed('a<b>..</b>'), 'MalformedXML'],
    ['an unknown element', '<Delete><Object><Key>a</Key><Path>x</Path></Object></Delete>', 'MalformedXML'],
    [
      'a condition that nobody looks at',
      '<Delete><Object><Key>a</Key><Size>1</Size></Object></Delete>',
      'MalformedXML',
    ],
    ['an element in another case', '<Delete><Object><key>a</key></Object></Delete>', 'MalformedXML'],
    ['a prefix', '<x:Delete><Object><Key>a</Key></Object></x:Delete>', 'MalformedXML'],
    ['another root', '<Remove><Object><Key>a</Key></Object></Remove>', 'MalformedXML'],
    ['a second root', `${keyed('a')}${keyed('../b')}`, 'MalformedXML'],
    ['text behind the root', `${keyed('a')}x`, 'MalformedXML'],
    ['an attribute', '<Delete a="b"><Object><Key>a</Key></Object></Delete>', 'MalformedXML'],
    ['another name space', '<Delete xmlns="urn:x"><Object><Key>a</Key></Object></Delete>', 'MalformedXML'],
    [
      'a version that climbs',
      '<Delete><Object><Key>a</Key><VersionId>../x</VersionId></Object></Delete>',
      'InvalidArgument',
    ],
    ['a version of dots', '<Delete><Object><Key>a</Key><VersionId>..</VersionId></Object></Delete>', 'InvalidArgument'],
    ['no end', '<Delete><Object><Key>a</Key></Object>', 'MalformedXML'],
    ['another end', '<Delete><Object><Key>a</Object></Key></Delete>', 'MalformedXML'],
    ['another encoding', `<?xml version="1.0" encoding="UTF-16"?>${keyed('a')}`, 'MalformedXML'],
    ['nothing', '', 'MissingRequestBodyError'],
  ])('with %s is refused', (_what, xml, code) => expect(codeOf(() => remove(xml))).toBe(code))

  test('is UTF-8', () =>
    expect(codeOf(() => readDocument('Delete', Buffer.from(keyed('\u00ff'), 'latin1')))).toBe('MalformedXML'))

  test('has a thousand keys at most', () => {
    const of = (count: number) => `<Delete>${'<Object><Key>a</Key></Object>'.repeat(count)}</Delete>`
    expect(remove(of(1_000)).keys).toHaveLength(1_000)
    expect(codeOf(() => remove(of(1_001)))).toBe('MalformedXML')
  })
})

describe('the reader', () => {
  test('goes 32 elements deep', () => {
    const nested = (depth: number) => Buffer.from(`${'<a>'.repeat(depth)}${'</a>'.repeat(depth)}`)
    expect(codeOf(() => readXml(nested(32)))).toBe('read')
    expect(codeOf(() => readXml(nested(33)))).toBe('MalformedXML')
  })

  test('takes time by the length of what it reads', () => {
    for (const piece of ['<a>', '<a xmlns="', '&#', '<', 'x', ' ', '&amp;', '<a/>', ']]'])
      expect(codeOf(() => readXml(Buffer.from(piece.repeat(500_000))))).toBe('MalformedXML')
  })
})

describe('other documents', () => {
  test.each([
    [
      'CompleteMultipartUpload',
      '<CompleteMultipartUpload><Part><ETag>"a"</ETag><PartNumber>1</PartNumber><ChecksumCRC32>x</ChecksumCRC32>' +
        '</Part></CompleteMultipartUpload>',
      'read',
    ],
    ['CompleteMultipartUpload', '<CompleteMultipartUpload/>', 'MalformedXML'],
    [
      'CompleteMultipartUpload',
      '<CompleteMultipartUpload><Part><ETag>a</ETag><PartNumber>../1</PartNumber></Part></CompleteMultipartUpload>',
      'MalformedXML',
    ],
    ['Tagging', '<Tagging><TagSet><Tag><Key>a</Key><Value></Value></Tag></TagSet></Tagging>', 'read'],
    ['Tagging', '<Tagging><TagSet/></Tagging>', 'read'],
    ['Tagging', '<Tagging/>', 'MalformedXML'],
    ['LegalHold', '<LegalHold><Status>ON</Status></LegalHold>', 'read'],
    ['LegalHold', '<LegalHold><Status>../ON</Status></LegalHold>', 'MalformedXML'],
    [
      'Retention',
      '<Retention><Mode>COMPLIANCE</Mode><RetainUntilDate>2030-01-01T00:00:00Z</RetainUntilDate></Retention>',
      'read',
    ],
    ['VersioningConfiguration', '<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>', 'read'],
    [
      'VersioningConfiguration',
      '<VersioningConfiguration><Status>Enabled</Status><MfaDelete>Enabled</MfaDelete></VersioningConfiguration>',
      'NotImplemented',
    ],
    [
      'ObjectLockConfiguration',
      '<ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled><Rule><DefaultRetention>' +
        '<Mode>GOVERNANCE</Mode><Days>1</Days></DefaultRetention></Rule></ObjectLockConfiguration>',
      'read',
    ],
    [
      'CORSConfiguration',
      '<CORSConfiguration><CORSRule><AllowedMethod>GET</AllowedMethod><AllowedOrigin>*</AllowedOrigin></CORSRule>' +
        '</CORSConfiguration>',
      'read',
    ],
    ['CreateBucketConfiguration', '', 'read'],
    [
      'CreateBucketConfiguration',
      '<CreateBucketConfiguration><LocationConstraint>eu-1a</LocationConstraint></CreateBucketConfiguration>',
      'read',
    ],
    [
      'CreateBucketConfiguration',
      '<CreateBucketConfiguration><Bucket><Type>Directory</Type></Bucket></CreateBucketConfiguration>',
      'MalformedXML',
    ],
  ] as const)('%s %s: %s', (name, xml, expected) =>
    expect(codeOf(() => readDocument(name, Buffer.from(xml)))).toBe(expected),
  )

  test('are short', () => {
    const xml = `<Tagging><TagSet/>${' '.repeat(20 * 1024)}</Tagging>`
    expect(codeOf(() => readDocument('Tagging', Buffer.from(xml)))).toBe('MaxMessageLengthExceeded')
  })
})
