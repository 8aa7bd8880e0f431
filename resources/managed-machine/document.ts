/** Configuration of a managed machine, as one document: the controller of its owner creates it, the agent of its host
 *  delivers it, and the script in its image applies it completely or not at all. In its texts `@ROOT@` is the folder
 *  with the files of this document, `@RUN@` the folder of the sockets, and `@IF:<hardware address>@` the name of an
 *  interface. */
import { z } from 'zod'
import { DEV_ADMINS_MAXIMUM } from '../../domain/dev-cluster/rules.ts'
import { CidrText, ObjectName, Port, PublicKey } from '../kit/fields.ts'

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
/** Of a cluster, over all its pools. */
const NODES_MAXIMUM = 1_000
const HOST_KEY_MAXIMUM = 1_024

const NAME_MAXIMUM = 63

const Text = z.string().max(TEXT_MAXIMUM)

/** Location and credentials of an archive. Everything but the location is secret. */
const Repository = z.strictObject({
  /** Name in its certificate; the machine knows an address for it. */
  endpoint: ObjectName,
  port: Port,
  region: z.string().max(63),
  bucket: z.string().max(NAME_MAXIMUM),
  accessKeyId: z.string().max(128),
  secretAccessKey: z.string().max(128),
  /** Key that encrypts archived data before it leaves the machine. */
  cipherKey: z.string().max(128),
  /** CA that signed its certificate. */
  authority: z.string().max(PEM_MAXIMUM),
})
export type Repository = z.infer<typeof Repository>

const Restore = z.strictObject({
  /** Of the original database. */
  repository: Repository,
  /** RFC 3339; null for the end of the archive. */
  targetTime: z.string().max(64).nullable(),
})

export const MachineDocument = z.strictObject({
  /** uid of the Server: a machine refuses the document of another one. */
  machine: z.string().min(1).max(63),
  generation: z.int().min(0),
  fingerprint: z.string().min(1).max(64),
  /** Addresses with prefix that interfaces have besides those that they request themselves. */
  addresses: z
    .array(z.strictObject({ interface: z.string().max(17), address: CidrText }))
    .max(ADDRESSES_MAXIMUM)
    .optional(),
  routes: z
    .array(z.strictObject({ to: CidrText, device: z.string().max(32) }))
    .max(ROUTES_MAXIMUM)
    .optional(),
  /** Kernel settings below `net.`. */
  sysctl: z
    .record(z.string().regex(/^net\.[a-z0-9_.]+$/), z.string().max(64))
    .refine((settings) => Object.keys(settings).length <= SETTINGS_MAXIMUM, `at most ${SETTINGS_MAXIMUM} settings`)
    .optional(),
  /** A complete ruleset for `nft -f`, which replaces the previous one in one transaction. */
  nftables: Text.optional(),
  haproxy: z
    .strictObject({
      config: Text,
      /** Chain and key of each certificate, as files with these names in `@ROOT@/certificates`. */
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
      /** Release of the programs; the image must have it. */
      release: z.string().regex(/^1\.\d{1,3}\.\d{1,3}$/),
      nodeName: z.string().max(63),
      /** Address in the network of the cluster. */
      nodeAddress: CidrText,
      /** Endpoints of the API and of the tunnel of its control plane. */
      endpoint: z.url().max(300),
      tunnel: z.strictObject({ host: ObjectName, port: z.int() }),
      /** Where its pods reach the API: on the node itself, which forwards to the endpoint. */
      localApi: z.strictObject({ address: CidrText, port: z.int() }),
      certificateAuthority: z.string().max(PEM_MAXIMUM),
      /** For its volume driver: the server and its location. */
      volumes: z.strictObject({ serverId: ObjectName, zone: z.string().max(63) }).optional(),
      /** Secret for requesting its first certificate; absent after it has joined. */
      bootstrapToken: z
        .string()
        .regex(/^[a-z0-9]{6}\.[a-z0-9]{16}$/)
        .optional(),
      /** Of the entire cluster. */
      podCidr: CidrText,
      serviceCidr: CidrText,
      dnsAddress: CidrText,
      /** Taints that the node registers with. */
      taints: z
        .array(z.strictObject({ key: ObjectName, value: z.string().max(63), effect: z.string().max(32) }))
        .max(TAINTS_MAXIMUM),
      /** Routes to the pods of the other nodes. */
      routes: z.array(z.strictObject({ to: CidrText, via: CidrText })).max(NODES_MAXIMUM),
    })
    .optional(),
  /** A complete Kubernetes cluster on one node. It creates its keys itself, and they never leave it. */
  devCluster: z
    .strictObject({
      /** Release of the programs; the image must have it. */
      release: z.string().regex(/^1\.\d{1,3}\.\d{1,3}$/),
      nodeName: z.string().max(NAME_MAXIMUM),
      /** Address of the node for its own use. */
      nodeAddress: z.ipv4(),
      apiPort: Port,
      /** Its public addresses, IPv6 first. */
      publicAddresses: z.array(CidrText).min(1).max(2),
      /** One of each family, IPv4 first. */
      podCidrs: z.array(CidrText).length(2),
      serviceCidrs: z.array(CidrText).length(2),
      dnsAddress: z.ipv4(),
      nodeLabels: z.record(ObjectName, z.string().max(NAME_MAXIMUM)),
      /** Issuer of tokens for people: its name for API servers, and its public keys as a JWK set. */
      issuer: z.strictObject({
        url: z.url().max(300),
        audience: ObjectName,
        keys: z.array(z.looseObject({})),
      }),
      /** Issuer name of its API in service account tokens. */
      serviceAccountIssuer: z.url().max(300),
      /** Public key in PEM of the additional issuer of administrator tokens. */
      adminKey: z.string().max(4_096),
      /** uids of service accounts whose holders lost them: they are deleted and replaced. Absent when there is none. */
      endedAdmins: z.array(z.uuid()).max(DEV_ADMINS_MAXIMUM).optional(),
      authorizedKeys: z.array(PublicKey).max(KEYS_MAXIMUM),
    })
    .optional(),
  /** PostgreSQL, with its data on the disk with that serial. */
  postgresql: z
    .strictObject({
      diskSerial: z.string().regex(/^[a-z0-9-]{1,20}$/),
      database: z.string().max(NAME_MAXIMUM),
      owner: z.string().max(NAME_MAXIMUM),
      /** In PostgreSQL's stored form: the machine never receives the password itself. */
      passwordVerifier: z.string().max(256),
      /** Increases with each password: sessions of earlier passwords are ended. */
      passwordGeneration: z.int().min(1),
      certificate: z.string().max(PEM_MAXIMUM),
      key: z.string().max(PEM_MAXIMUM),
      /** Networks whose clients may connect. */
      networks: z.array(CidrText).max(ADDRESSES_MAXIMUM),
      /** Settings of the server besides those that the machine sets itself. */
      settings: z
        .record(z.string().regex(/^[a-z_]{1,63}$/), z.string().max(64))
        .refine((settings) => Object.keys(settings).length <= SETTINGS_MAXIMUM, `at most ${SETTINGS_MAXIMUM} settings`),
      /** The database's archive, with a daily full backup at that time in UTC. */
      archive: z
        .strictObject({
          repository: Repository,
          retentionDays: z.int().min(1).max(366),
          fullBackupAt: z.strictObject({ hour: z.int().min(0).max(23), minute: z.int().min(0).max(59) }),
        })
        .optional(),
      /** Source of its initial data, when it has none yet. */
      restore: Restore.optional(),
    })
    .optional(),
  /** An SSH server that forwards connections for the user `admin` and does nothing else. */
  bastion: z
    .strictObject({
      authorizedKeys: z.array(PublicKey).max(KEYS_MAXIMUM),
      /** Secret, as the file of sshd; without it the machine creates one. */
      hostKey: z.string().max(HOST_KEY_MAXIMUM).optional(),
    })
    .optional(),
})
export type MachineDocument = z.infer<typeof MachineDocument>
/** What an owner specifies; the rest follows from the machine. */
export type MachineDocumentParts = Omit<z.input<typeof MachineDocument>, 'machine' | 'generation' | 'fingerprint'>
