window.ui = SwaggerUIBundle({
  url: "../api-doc/openapi.json",
  dom_id: "#swagger-ui",
  deepLinking: true,
  // Otherwise the page would ask a validator on the internet about every document.
  validatorUrl: "none",
});
