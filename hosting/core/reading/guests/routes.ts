/** Routes of requests to a playground, from its Ingresses. */
import { z } from 'zod'
import { type KubeApi, send } from '../../kube-api.ts'

const ROUTES_MAXIMUM = 100
const NOT_FOUND = 404

const Ingresses = z.object({
  items: z.array(
    z.object({
      metadata: z.object({ namespace: z.string() }),
      spec: z.object({
        rules: z
          .array(
            z.object({
              host: z.string().default(''),
              http: z
                .object({
                  paths: z.array(
                    z.object({
                      path: z.string().default('/'),
                      pathType: z.string(),
                      backend: z.object({
                        service: z
                          .object({
                            name: z.string(),
                            port: z.object({ number: z.number().optional(), name: z.string().optional() }),
                          })
                          .optional(),
                      }),
                    }),
                  ),
                })
                .optional(),
            }),
          )
          .default([]),
      }),
    }),
  ),
})
const Service = z.object({
  spec: z.object({
    clusterIP: z.string().default(''),
    ports: z.array(z.object({ port: z.number(), name: z.string().optional() })).default([]),
  }),
})

export const AppRoute = z.object({
  host: z.string(),
  path: z.string(),
  isExact: z.boolean(),
  namespace: z.string(),
  service: z.string(),
  port: z.object({ number: z.number().optional(), name: z.string().optional() }),
})
export type AppRoute = z.infer<typeof AppRoute>

/** Address and port of a service, as the nodes of its cluster reach it. */
export const AppTarget = z.object({ address: z.ipv4(), port: z.int().min(1).max(65_535) })
export type AppTarget = z.infer<typeof AppTarget>

/** Routes of all Ingresses. Throws when the API returns something else. */
export async function readRoutes(api: KubeApi): Promise<readonly AppRoute[]> {
  const { text } = await send(api, 'GET', `/apis/networking.k8s.io/v1/ingresses?limit=${ROUTES_MAXIMUM}`)
  return Ingresses.parse(JSON.parse(text)).items.flatMap(({ metadata: { namespace }, spec: { rules } }) =>
    rules.flatMap(({ host, http }) =>
      (http?.paths ?? []).flatMap(({ path, pathType, backend: { service } }) =>
        service === undefined
          ? []
          : [
              {
                host,
                path,
                namespace,
                isExact: pathType === 'Exact',
                service: service.name,
                port: service.port,
              },
            ],
      ),
    ),
  )
}

/** Undefined when the service has no address or not that port. */
export async function targetOf(api: KubeApi, { namespace, service, port }: AppRoute): Promise<AppTarget | undefined> {
  const path = `/api/v1/namespaces/${namespace}/services/${service}`
  const { status, text } = await send(api, 'GET', path, { accepted: [NOT_FOUND] })
  if (status === NOT_FOUND) return undefined
  const { clusterIP: address, ports } = Service.parse(JSON.parse(text)).spec
  const found = ports.find((each) => each.port === port.number || (port.name !== undefined && each.name === port.name))
  return found === undefined ? undefined : AppTarget.safeParse({ address, port: found.port }).data
}
