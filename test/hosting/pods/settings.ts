/** What an operator would say of a host cluster, for tests. */
import { HostSettings } from '../../../hosting/pods/settings.ts'
import type { KUBERNETES_RELEASES } from '../../../domain/kubernetes-cluster/versions.ts'

const REGISTRY = 'images.example.test'
const imagesOf = (release: (typeof KUBERNETES_RELEASES)[number]) => ({
  apiserver: `${REGISTRY}/kube-apiserver:v${release}`,
  controllerManager: `${REGISTRY}/kube-controller-manager:v${release}`,
  scheduler: `${REGISTRY}/kube-scheduler:v${release}`,
})

export const hostSettings = (more: object = {}): HostSettings =>
  HostSettings.parse({
    images: {
      etcd: `${REGISTRY}/etcd:3.6.9`,
      tunnel: `${REGISTRY}/proxy-server:v0.34.0`,
      platform: `${REGISTRY}/svccloud:1`,
      releases: { '1.35.4': imagesOf('1.35.4'), '1.36.3': imagesOf('1.36.3') },
    },
    storage: { className: 'fast', mebibytesOfOne: 1_024, mebibytes: 8_192 },
    endpoint: { type: 'NodePort', address: '192.0.2.1' },
    from: [{ ipBlock: { cidr: '192.0.2.9/32' } }],
    memoryMebibytes: 8_192,
    ...more,
  })
