/** Where the embedded server may answer differently from the real one, each with the reason. Everything else must be
 *  equal.
 *  A rule changes what it matches in both transcripts, so that they can be compared without it. */

export interface Accepted {
  /** Scenarios it is about, as `theme/name`; all when absent. */
  readonly where?: RegExp
  readonly what: RegExp
  /** What stands there instead; `<accepted>` when absent. */
  readonly becomes?: string
  readonly reason: string
}

export const accepted: readonly Accepted[] = [
  {
    what: /^( *- field: .*\n *message: .*\n *reason: .*\n)\1+/gm,
    becomes: '$1',
    reason: 'The real server checks the metadata of custom resources twice and lists what it finds twice.',
  },
  {
    what: /^ *storageVersionHash: .*\n/gm,
    becomes: '',
    reason:
      'A hash of how etcd stores the kind. It serves the migration of stored objects, which the embedded server ' +
      'does not do.',
  },
  {
    where: /^discovery\/explain describes a core kind$/,
    what: /DESCRIPTION:[\s\S]*$/,
    reason:
      'Of the built-in kinds, fields and types are served, not the prose about them: it is hundreds of kilobytes.',
  },
  {
    where: /^core-kinds\/a deployment by kubectl create, and one with an unknown member$/,
    what: /(?:^(?!\$).+$\n?)+/gm,
    becomes: '<accepted>\n',
    reason:
      'Workloads are stored and read by nobody, so their members are not known: protobuf of them is refused, and ' +
      'nothing in JSON or YAML of them is unknown.',
  },
  {
    where: /^access\/acting as somebody else needs a right$/,
    what: /Forbidden\): .*$/gm,
    reason:
      'The real server tries its finer-grained rights to impersonate first, and names the one of them that lacks.',
  },
  {
    where: /^crud\/the kind must be the one of the path$/,
    what: /^warning: .*\n/gm,
    becomes: '',
    reason: 'For a version that there is not, the real server warns of fields before it refuses the request.',
  },
  {
    where: /^listing\/(a bad continue token|bad label selectors)/,
    what: /^message: .*$/gm,
    reason: 'The words of the real parser about what it met where; status, reason and code are compared.',
  },
  {
    where: /^listing\/a page with a selector does not count the rest$/,
    what: /^metadata\.continue: .*$/gm,
    reason: 'The real server may offer a next page that turns out to be empty, as it does not look ahead.',
  },
  {
    where: /^subresources\/(the status is validated|a bad scale is refused)$/,
    what: /^ *- field: \.?(status|spec)\.replicas\n.*\n.*\n|^message: .*$/gm,
    becomes: '',
    reason: 'The real server reads the scale of an invalid object before it refuses it, and complains of that as well.',
  },
  {
    where: /^definition-lifecycle\/a definition is filled in/,
    what: /^ {4}- apiVersion: .*\n(?: {6}.*\n)*? {6}manager: kube-apiserver\n(?: {6}.*\n)*|<revision-\d>/gm,
    becomes: '',
    reason:
      'A controller of the real server writes the conditions after the creation; the embedded one has them ready ' +
      'with it.',
  },
  {
    where: /^definition-lifecycle\/exactly one version is stored$/,
    what: /is invalid: .*$/m,
    reason: 'The real server prints its Go structures.',
  },
  {
    where: /^definition-lifecycle\/a rule that costs too much is refused$/,
    what: /^(201|422) [\s\S]*/m,
    reason:
      'The embedded server does not estimate what a rule may cost. Our own definitions bound every list and ' +
      'string, and the real one checks them.',
  },
]

/** The transcript without what may differ. */
export const comparable = (scenario: string, transcript: string): string =>
  accepted
    .filter(({ where }) => where?.test(scenario) ?? true)
    .reduce((text, { what, becomes }) => text.replace(what, becomes ?? '<accepted>'), transcript)
