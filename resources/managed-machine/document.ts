/** What a managed machine runs, as one document: made by the controller of its owner, delivered by the agent of its
 *  host, applied by the script in its image as a whole or not at all. In its texts `@ROOT@` stands for the folder with
 *  the files of this document, `@RUN@` for that of sockets, and `@IF:<hardware address>@` for the name of an
 *  interface. */
import { z } from 'zod'
import { DEV_ADMINS_MAXIMUM } from '../../domain/dev-cluster/rules.ts'

/** Of the document as JSON. */
export const MACHINE_DOCUMENT_BYTES_MAXIMUM = 1_048_576
const TEXT_MAXIMUM = 524_288
const PEM_MAXIMUM = 131_072
const CERTIFICATES_MAXIMUM = 64
const ROUTES_MAXIMUM = 64
const SETTINGS_MAXIMUM = 32
const ADDRESSES_MAXIMUM = 32
const KEYS_MAXIMUM = 1_000
const TAINTS_MAXIMUM = 16
/** Of a cluster, whatever its pools. */
const NODES_MAXIMUM = 1_000
const HOST_KEY_MAXIMUM = 1_024

const NAME_MAXIMUM = 63

const Text = z.string().max(TEXT_MAXIMUM)

/** Where an archive is, and what opens it. Everything of it is secret but the place. */
const Repository = z.strictObject({
  /** Name in its certificate, which the machine knows an address of. */
  endpoint: z.string().max(253),
  port: z.int().min(1).max(65_535),
  region: z.string().max(63),
  bucket: z.string().max(NAME_MAXIMUM),
  accessKeyId: z.string().max(128),
  secretAccessKey: z.string().max(128),
  /** That what is archived is encrypted with before it leaves the machine. */
  cipherKey: z.string().max(128),
  /** Who signs its certificate. */
  authority: z.string().max(PEM_MAXIMUM),
})
export type Repository = z.infer<typeof Repository>

const Restore = z.strictObject({
  /** Of the origin. */
  repository: Repository,
  /** RFC 3339; the end of the archive when null. */
  targetTime: z.string().max(64).nullable(),
})

export const MachineDocument = z.strictObject({
  /** uid of the Server: a machine refuses what is another's. */
  machine: z.string().min(1).max(63),
  generation: z.int().min(0),
  fingerprint: z.string().min(1).max(64),
  /** Addresses with prefix that interfaces have beside those that they ask for. */
  addresses: z
    .array(z.strictObject({ interface: z.string().max(17), address: z.string().max(49) }))
    .max(ADDRESSES_MAXIMUM)
    .optional(),
  routes: z
    .array(z.strictObject({ to: z.string().max(49), device: z.string().max(32) }))
    .max(ROUTES_MAXIMUM)
    .optional(),
  /** Settings of the kernel below `net.`. */
  sysctl: z
    .record(z.string().regex(/^net\.[a-z0-9_.]+$/), z.string().max(64))
    .refine((settings) => Object.keys(settings).length <= SETTINGS_MAXIMUM, `at most ${SETTINGS_MAXIMUM} settings`)
    .optional(),
  /** A whole ruleset for `nft -f`, which replaces the one before in one transaction. */
  nftables: Text.optional(),
  haproxy: z
    .strictObject({
      config: Text,
      /** Chain and key of each, as files of these names in `@ROOT@/certificates`. */
      certificates: z
        .record(z.string().regex(/^[a-z0-9-]{1,64}\.pem$/), z.string().max(PEM_MAXIMUM))
        .refine((all) => Object.keys(all).length <= CERTIFICATES_MAXIMUM, `at most ${CERTIFICATES_MAXIMUM}`)
        .default({}),
    })
    .optional(),
  keepalived: z.strictObject({ config: Text }).optional(),
  /** tayga.conf; the device in it is `nat64`. */
  nat64: z.strictObject({ config: Text }).optional(),
  /** unbound.conf. */
  dns64: z.strictObject({ config: Text }).optional(),
  /** A node of a Kubernetes cluster. */
  kubernetes: z
    .strictObject({
      /** Of the programs: one that the image has. */
      release: z.string().regex(/^1\.\d{1,3}\.\d{1,3}$/),
      nodeName: z.string().max(63),
      /** In the network of the cluster. */
      nodeAddress: z.string().max(49),
      /** Where it reaches the API and the tunnel of its control plane. */
      endpoint: z.url().max(300),
      tunnel: z.strictObject({ host: z.string().max(253), port: z.int() }),
      /** Where its pods reach the API: on the node itself, which leads them to the endpoint. */
      localApi: z.strictObject({ address: z.string().max(49), port: z.int() }),
      certificateAuthority: z.string().max(PEM_MAXIMUM),
      /** For its driver of volumes: which server it is, and where. */
      volumes: z.strictObject({ serverId: z.string().max(253), zone: z.string().max(63) }).optional(),
      /** Secret: what it asks for its first certificate with; absent once it has joined. */
      bootstrapToken: z
        .string()
        .regex(/^[a-z0-9]{6}\.[a-z0-9]{16}$/)
        .optional(),
      /** Of the whole cluster. */
      podCidr: z.string().max(49),
      serviceCidr: z.string().max(49),
      dnsAddress: z.string().max(49),
      /** That it has from its first moment on. */
      taints: z
        .array(z.strictObject({ key: z.string().max(253), value: z.string().max(63), effect: z.string().max(32) }))
        .max(TAINTS_MAXIMUM),
      /** To the pods of the other nodes. */
      routes: z.array(z.strictObject({ to: z.string().max(49), via: z.string().max(49) })).max(NODES_MAXIMUM),
    })
    .optional(),
  /** A whole Kubernetes cluster of one node. It makes its keys itself, and they never leave it. */
  devCluster: z
    .strictObject({
      /** Of the programs: one that the image has. */
      release: z.string().regex(/^1\.\d{1,3}\.\d{1,3}$/),
      nodeName: z.string().max(NAME_MAXIMUM),
      /** Of the node for itself. */
      nodeAddress: z.ipv4(),
      apiPort: z.int().min(1).max(65_535),
      /** Its public ones, IPv6 first. */
      publicAddresses: z.array(z.string().max(49)).min(1).max(2),
      /** Of each family, IPv4 first. */
      podCidrs: z.array(z.string().max(49)).length(2),
      serviceCidrs: z.array(z.string().max(49)).length(2),
      dnsAddress: z.ipv4(),
      nodeLabels: z.record(z.string().max(253), z.string().max(NAME_MAXIMUM)),
      /** Who signs tokens of people: as API servers know it, and its public keys as a JWK set. */
      issuer: z.strictObject({
        url: z.url().max(300),
        audience: z.string().max(253),
        keys: z.array(z.looseObject({})),
      }),
      /** What its API calls itself in tokens of service accounts. */
      serviceAccountIssuer: z.url().max(300),
      /** Public, in PEM: of who signs the tokens of its administrators beside itself. */
      adminKey: z.string().max(4_096),
      /** uids of service accounts whose holders lost them: these go, and others take their place. Absent while there
       *  is none. */
      endedAdmins: z.array(z.uuid()).max(DEV_ADMINS_MAXIMUM).optional(),
      authorizedKeys: z.array(z.string().max(16_384)).max(KEYS_MAXIMUM),
    })
    .optional(),
  /** PostgreSQL, with its data on the disk of that serial. */
  postgresql: z
    .strictObject({
      diskSerial: z.string().regex(/^[a-z0-9-]{1,20}$/),
      database: z.string().max(NAME_MAXIMUM),
      owner: z.string().max(NAME_MAXIMUM),
      /** As PostgreSQL keeps it: the password itself never comes to the machine. */
      passwordVerifier: z.string().max(256),
      /** Rises with each password: sessions of earlier ones are ended. */
      passwordGeneration: z.int().min(1),
      certificate: z.string().max(PEM_MAXIMUM),
      key: z.string().max(PEM_MAXIMUM),
      /** Networks whose clients may connect. */
      networks: z.array(z.string().max(49)).max(ADDRESSES_MAXIMUM),
      /** Settings of the server beside those that the machine gives it. */
      settings: z
        .record(z.string().regex(/^[a-z_]{1,63}$/), z.string().max(64))
        .refine((settings) => Object.keys(settings).length <= SETTINGS_MAXIMUM, `at most ${SETTINGS_MAXIMUM} settings`),
      /** Of its own, with a full backup each day at that time in UTC. */
      archive: z
        .strictObject({
          repository: Repository,
          retentionDays: z.int().min(1).max(366),
          fullBackupAt: z.strictObject({ hour: z.int().min(0).max(23), minute: z.int().min(0).max(59) }),
        })
        .optional(),
      /** What its data begins as, where there is none yet. */
      restore: Restore.optional(),
    })
    .optional(),
  /** An SSH server that forwards connections for the user `admin` and does nothing else. */
  bastion: z
    .strictObject({
      authorizedKeys: z.array(z.string().max(16_384)).max(KEYS_MAXIMUM),
      /** Secret, as the file of sshd; without it the machine makes its own. */
      hostKey: z.string().max(HOST_KEY_MAXIMUM).optional(),
    })
    .optional(),
})
export type MachineDocument = z.infer<typeof MachineDocument>
/** What an owner says of it; the rest follows from the machine. */
export type MachineDocumentParts = Omit<z.input<typeof MachineDocument>, 'machine' | 'generation' | 'fingerprint'>
